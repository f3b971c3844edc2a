package cluster

import (
	"fmt"
	"os"
	"path/filepath"
)

const (
	adminUser      = "workshop-admin"
	serviceRange   = "10.96.0.0/16"
	firstServiceIP = "10.96.0.1"
	podRange       = "10.244.0.1/16"
)

// Lens is the proxy before the API server that records the requests of users and the events that are delivered to them.
// Its source is cmd/lens.
const Lens = "lens"

// A component is one process of the control plane.
type component struct {
	// name of the program in bin/, of its log and of its lock.
	name string
	// ports are the names of the loopback ports that it listens on. The first is its address.
	ports []string
	// args are its flags.
	args []string
	// health is the URL that answers 200 when the component works. It is empty for kwok, whose nodes show that it
	// works.
	health string
}

// Names returns the names of the components, in the order in which they start.
func Names() (names []string) {
	for _, p := range (&Cluster{}).components() {
		names = append(names, p.name)
	}
	return names
}

// components returns the processes in the order in which they start.
func (c *Cluster) components() []component {
	pki := func(name string) string { return filepath.Join(c.dir(), "pki", name) }
	url := func(port string) string { return fmt.Sprintf("https://%s:%d", loopback, c.ports[port]) }
	kubeconfig := func(name string) string { return "--kubeconfig=" + c.componentKubeconfig(name) }
	port := func(name string) string { return fmt.Sprint(c.ports[name]) }
	all := []component{{
		name: "etcd", ports: []string{"etcd", "etcd-peer"}, health: url("etcd") + "/health",
		args: []string{
			"--data-dir=" + filepath.Join(c.dir(), "etcd"), "--log-level=warn",
			// No other member can be elected: the only member need not wait a second for others.
			"--heartbeat-interval=20", "--election-timeout=100",
			"--listen-client-urls=" + url("etcd"), "--advertise-client-urls=" + url("etcd"),
			"--listen-peer-urls=" + url("etcd-peer"), "--initial-advertise-peer-urls=" + url("etcd-peer"),
			"--initial-cluster=default=" + url("etcd-peer"),
			"--client-cert-auth", "--trusted-ca-file=" + pki("etcd-ca.crt"),
			"--cert-file=" + pki("etcd.crt"), "--key-file=" + pki("etcd.key"),
			"--peer-client-cert-auth", "--peer-trusted-ca-file=" + pki("etcd-ca.crt"),
			"--peer-cert-file=" + pki("etcd.crt"), "--peer-key-file=" + pki("etcd.key"),
		},
	}, {
		name: "kube-apiserver", ports: []string{"apiserver"}, health: url("apiserver") + "/readyz",
		args: c.apiserverArgs(),
	}, {
		name: "kube-controller-manager", ports: []string{"controller-manager"},
		health: url("controller-manager") + "/healthz",
		args: []string{
			kubeconfig("controller-manager"), "--leader-elect=false",
			"--bind-address=" + loopback, "--secure-port=" + port("controller-manager"),
			"--tls-cert-file=" + pki("loopback.crt"), "--tls-private-key-file=" + pki("loopback.key"),
			"--use-service-account-credentials", "--root-ca-file=" + pki("ca.crt"),
			"--service-account-private-key-file=" + pki("service-account.key"),
			"--cluster-signing-cert-file=" + pki("ca.crt"), "--cluster-signing-key-file=" + pki("ca.key"),
			// The default of 20 requests a second would be the slowest part of every measurement.
			"--kube-api-qps=500", "--kube-api-burst=1000",
		},
	}, {
		name: "kube-scheduler", ports: []string{"scheduler"}, health: url("scheduler") + "/healthz",
		args: []string{
			kubeconfig("scheduler"), "--leader-elect=false",
			"--bind-address=" + loopback, "--secure-port=" + port("scheduler"),
			"--tls-cert-file=" + pki("loopback.crt"), "--tls-private-key-file=" + pki("loopback.key"),
			"--kube-api-qps=500", "--kube-api-burst=1000",
		},
	}, {
		// Without a server address kwok listens on no port. Its server requires no client certificate, and would offer
		// its metrics and profiles to every user of the machine.
		name: "kwok",
		args: []string{
			kubeconfig("kwok"), "--manage-all-nodes",
			"--config=kwok.yaml", // in its directory: in a path a comma would separate two files
			"--cidr=" + podRange, "--node-ip=" + loopback,
			"--node-lease-duration-seconds=40",
		},
	}}
	if c.Volatile {
		all[0].args = append(all[0].args, "--unsafe-no-fsync")
	}
	if c.hasLens() {
		all = append(all, component{
			name: Lens, ports: []string{Lens}, health: url(Lens) + "/readyz",
			args: []string{"--address=" + loopback + ":" + port(Lens), "--server=" + url("apiserver"),
				"--pki=" + filepath.Join(c.dir(), "pki"), "--ledger=" + c.Ledger()},
		})
	}
	return all
}

// hasLens reports whether the lens is wanted and available. A cluster without the lens works, too.
func (c *Cluster) hasLens() bool {
	if !c.WithLens {
		return false
	}
	_, program := os.Stat(filepath.Join(c.bin, Lens))
	_, started := os.Stat(c.pidFile(Lens))
	return program == nil || started == nil
}

// address returns the address at which users reach the API server: that of the lens, where the cluster has a lens. A
// cluster that is held for a command has no lens, and no port for it.
func (c *Cluster) address() string {
	if c.hasLens() && c.ports[Lens] != 0 {
		return fmt.Sprintf("https://%s:%d", loopback, c.ports[Lens])
	}
	return c.api("")
}

func (c *Cluster) apiserverArgs() []string {
	pki := func(name string) string { return filepath.Join(c.dir(), "pki", name) }
	return append([]string{
		// Without a given address the API server looks for the default route, and ends on a machine that has no
		// network.
		"--bind-address=" + loopback, "--advertise-address=" + loopback,
		"--secure-port=" + fmt.Sprint(c.ports["apiserver"]),
		"--tls-cert-file=" + pki("apiserver.crt"), "--tls-private-key-file=" + pki("apiserver.key"),
		"--etcd-servers=" + fmt.Sprintf("https://%s:%d", loopback, c.ports["etcd"]), "--etcd-cafile=" + pki("etcd-ca.crt"),
		"--etcd-certfile=" + pki("etcd-client.crt"), "--etcd-keyfile=" + pki("etcd-client.key"),
		"--client-ca-file=" + pki("ca.crt"), "--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--service-cluster-ip-range=" + serviceRange,
		"--service-account-key-file=" + pki("service-account.pub"),
		"--service-account-signing-key-file=" + pki("service-account.key"),
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--requestheader-client-ca-file=" + pki("front-proxy-ca.crt"), "--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + pki("front-proxy.crt"), "--proxy-client-key-file=" + pki("front-proxy.key"),
		// No kubelet listens. Another program at the port of kubelets must not be taken for a kubelet.
		"--kubelet-certificate-authority=" + pki("ca.crt"),
		// A loopback address cannot be the endpoint of the Service "kubernetes".
		"--endpoint-reconciler-type=none",
		"--audit-policy-file=" + filepath.Join(c.dir(), "audit-policy.yaml"),
		"--audit-log-path=" + c.AuditLog(), "--audit-log-maxsize=200", "--audit-log-maxbackup=1",
	}, c.APIServer...)
}
