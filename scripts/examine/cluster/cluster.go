// Package cluster runs the local environment: a complete control plane of processes on loopback, with
// simulated nodes.
package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"sigs.k8s.io/kwok/kustomize/stage/node/fast"
	podfast "sigs.k8s.io/kwok/kustomize/stage/pod/fast"
	"sigs.k8s.io/yaml"

	"example.com/operator-workshop/scripts/examine/lock"
)

// loopback is the only address on which processes of the local environment listen.
const loopback = "127.0.0.1"

var (
	//go:embed files/audit-policy.yaml
	auditPolicy string
	//go:embed files/base.yaml
	base string
	// stages are the stages that kwok simulates: nodes become ready, pods run, complete and disappear.
	stages = strings.Join([]string{
		fast.DefaultNodeInit, podfast.DefaultPodReady, podfast.DefaultPodComplete, podfast.DefaultPodDelete,
	}, "\n---\n")
)

// Cluster is the local environment of one checkout.
type Cluster struct {
	// APIServer are flags of the API server, in addition to the usual flags.
	APIServer []string
	// Volatile is for a cluster whose data need not survive a crash of the machine: etcd does not wait for the disk.
	Volatile bool
	// WithLens makes users connect to the API server through the lens, when bin/ has that program.
	WithLens bool

	// Fixes are those of a cluster that lasts as long as one command, unless the caller sets its own.
	Fixes Fixes

	bin, state string
	ports      map[string]int
	report     func(format string, args ...any)
}

// Fixes end the messages about a cluster. The program that uses this package knows the commands of its users.
type Fixes struct {
	// Missing is for a cluster that was not made, and Damaged for a cluster of which a part does not work.
	Missing, Damaged string
	// Remove is what ends a cluster, in the middle of a sentence.
	Remove string
	// User is for the damaged kubeconfig of a user, and Programs for programs that do not start.
	User, Programs string
}

var fixesOfHeld = Fixes{
	Missing:  "run the command again: it starts a new cluster",
	Damaged:  "run the command again: it starts a new cluster",
	Remove:   "the program that has started it",
	User:     "add the user again",
	Programs: "KUBEBUILDER_ASSETS names a folder with programs for this machine",
}

// New returns the local cluster whose files are in the folder state and whose programs are in bin. It reports each step
// to report.
func New(bin, state string, report func(format string, args ...any)) *Cluster {
	return &Cluster{bin: bin, state: state, ports: map[string]int{}, report: report, Fixes: fixesOfHeld}
}

// Kubeconfig is the administrator's kubeconfig.
func (c *Cluster) Kubeconfig() string { return filepath.Join(c.state, "kubeconfig") }

// KubectlCache is the folder of the discovery cache of the reader's kubectl. kubectl keeps this cache for hours; in a
// folder that is removed with the cluster, the cache never describes another cluster.
func (c *Cluster) KubectlCache() string { return filepath.Join(c.state, "cache") }

// AuditLog is the API server's audit log: one JSON object a line.
func (c *Cluster) AuditLog() string { return filepath.Join(c.dir(), "audit.log") }

// Ledger is the file that the lens records: one JSON object a line, a loop.Record.
func (c *Cluster) Ledger() string { return filepath.Join(c.dir(), "ledger.jsonl") }

// PageLogs is the folder for the logs that commands of pages write. Up makes it.
func (c *Cluster) PageLogs() string { return filepath.Join(c.state, "logs") }

// dir holds the files of the cluster itself. Down removes it.
func (c *Cluster) dir() string { return filepath.Join(c.state, "cluster") }

func (c *Cluster) lockFile() string { return filepath.Join(c.state, "lock") }

// lock makes a second command on the same cluster wait.
func (c *Cluster) lock(ctx context.Context) (release func(), err error) {
	if err := os.MkdirAll(c.state, 0o700); err != nil {
		return nil, fmt.Errorf("%w: the folder for the state of the cluster must be writable", err)
	}
	return lock.Acquire(ctx, c.lockFile(), func(owner string) {
		c.report("another command works on this cluster (process %s), waiting for it", owner)
	})
}

// upTimeout limits Up. A busy machine needs ten times the ten seconds of an idle one, and more.
const upTimeout = 10 * time.Minute

// Up starts the components that do not run, and returns when the cluster serves, its nodes are ready and pods can be
// created. It repairs a cluster that was killed in part or completely; data is kept. CRDs given by file are installed
// before the controllers start: the garbage collector looks for new kinds only every 30 s, and so knows these kinds
// from the start.
func (c *Cluster) Up(ctx context.Context, crds ...string) error {
	if strings.Contains(c.state, ":") {
		return fmt.Errorf("the folder %s has a ':' in its path, which separates folders in PATH and files in "+
			"KUBECONFIG: move the checkout to a path without one", c.state)
	}
	release, err := c.lock(ctx)
	if err != nil {
		return err
	}
	defer release()
	ctx, cancel := context.WithTimeoutCause(ctx, upTimeout, fmt.Errorf("waited for %v", upTimeout))
	defer cancel()
	for range 3 { // a port that was free when it was chosen may be taken when its component starts
		if err = c.bringUp(ctx, crds); err == nil || ctx.Err() != nil || !c.lostPort() {
			return err
		}
	}
	return err
}

// bringUp is one try of Up.
func (c *Cluster) bringUp(ctx context.Context, crds []string) error {
	if err := c.prepare(); err != nil {
		return fmt.Errorf("prepare %s: %w", c.dir(), err)
	}
	all := c.components()
	if err := c.launchEtcd(ctx, all[0]); err != nil {
		return err
	}
	if err := c.launch(ctx, all[1]); err != nil { // not together with etcd: it waits a second when etcd is late
		return err
	}
	if len(crds) == 0 { // without CRDs to install first, the other components can start meanwhile
		for _, p := range all[2:] {
			if err := c.start(p); err != nil {
				return err
			}
		}
	}
	if err := c.install(ctx, crds); err != nil {
		return err
	}
	if err := c.launch(ctx, all[2:]...); err != nil {
		return err
	}
	return c.waitUsable(ctx)
}

// prepare makes the files of the cluster and its running processes consistent: incomplete files are made anew, and
// processes that run with older files are stopped.
func (c *Cluster) prepare() error {
	if err := c.endUnknown(); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(c.dir(), "etcd", "member")); err != nil {
		if err := c.startEmpty(); err != nil {
			return err
		}
	}
	if err := c.writeFiles(); err != nil {
		return err
	}
	if err := c.choosePorts(); err != nil {
		return err
	}
	if err := c.writeKubeconfigs(); err != nil {
		return err
	}
	return c.stopOutdated()
}

// launchEtcd starts etcd. When etcd fails on its data, or finds no usable data, and no `up` has completed here yet, the
// data are the rest of an interrupted first start: launchEtcd starts with empty data.
func (c *Cluster) launchEtcd(ctx context.Context, etcd component) error {
	if _, err := os.Stat(c.installedFile()); err == nil {
		return c.launch(ctx, etcd)
	}
	first, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := c.launch(first, etcd); err == nil || ctx.Err() != nil {
		return err
	}
	if err := errors.Join(c.startEmpty(), os.MkdirAll(filepath.Join(c.dir(), "etcd"), 0o700)); err != nil {
		return err
	}
	return c.launch(ctx, etcd)
}

// startEmpty stops all components, because an API server does not notice that the revisions of etcd begin at 1 again,
// and removes the rest of their data.
func (c *Cluster) startEmpty() error {
	if _, err := os.Stat(c.installedFile()); err == nil {
		c.report("the data of etcd are gone: the cluster starts empty")
	}
	return errors.Join(c.stopAll(), os.RemoveAll(filepath.Join(c.dir(), "etcd")), os.RemoveAll(c.installedFile()))
}

// launch starts the components that do not run and waits until all of them are healthy. It restarts a component that
// dies meanwhile: such a component may have been killed just before, and looked alive.
func (c *Cluster) launch(ctx context.Context, components ...component) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	starts := map[string]int{}
	ensure := func(p component) error {
		if c.pid(p.name) != 0 {
			return nil
		}
		if starts[p.name]++; starts[p.name] > 2 {
			err := fmt.Errorf("%s ended twice, its log %s ends with:\n%s\nfix: %s", p.name, c.logFile(p.name),
				c.lastWords(p.name), c.Fixes.Damaged)
			return fatal{errors.Join(c.diskFull(), err)}
		}
		return c.start(p)
	}
	for _, p := range components {
		if err := ensure(p); err != nil {
			return err
		}
	}
	for _, p := range components {
		err := poll(ctx, 50*time.Millisecond, func() error {
			if err := ensure(p); err != nil {
				return err
			}
			return c.works(ctx, client, p)
		})
		if err != nil {
			return fmt.Errorf("wait for %s: %w", p.name, err)
		}
	}
	return nil
}

// diskFull returns an error when etcd has no space for its log of 64 MiB. On a full disk the logs end before they
// report it.
func (c *Cluster) diskFull() error {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(c.dir(), &disk); err != nil || disk.Bavail*uint64(disk.Bsize) >= 64<<20 {
		return err
	}
	return &os.PathError{Op: "write", Path: c.dir(), Err: syscall.ENOSPC}
}

// installedFile exists after base.yaml was applied.
func (c *Cluster) installedFile() string { return filepath.Join(c.dir(), "installed") }

// install applies the objects that every local cluster has, and the CRDs. When a CRD is new to a cluster whose
// controllers run already, install restarts the controller manager so that it knows the kind at once.
func (c *Cluster) install(ctx context.Context, crds []string) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	_, total, err := c.nodes(ctx, client) // zero nodes: the reader deleted all of them, and no pod can run
	if err != nil {
		return err
	}
	if _, err := os.Stat(c.installedFile()); err != nil || total == 0 {
		if err := c.applyBase(ctx, client); err != nil {
			return err
		}
		if err := os.WriteFile(c.installedFile(), nil, 0o600); err != nil {
			return err
		}
	}
	for _, crd := range crds {
		created, err := c.apply(ctx, crd)
		if err != nil {
			return err
		}
		if err := c.established(ctx, crd); err != nil {
			return err
		}
		if created {
			if err := c.stop("kube-controller-manager", 5*time.Second); err != nil {
				return err
			}
		}
	}
	return nil
}

// apply applies a CRD and reports whether it is new. `kubectl apply` cannot keep a copy of a large CRD, because an
// annotation holds at most 256 KiB: with server-side apply the API server merges it.
func (c *Cluster) apply(ctx context.Context, crd string) (created bool, err error) {
	if info, err := os.Stat(crd); err == nil && info.Size() > 200<<10 {
		_, unknown := c.kubectl(ctx, "get", "-f", crd)
		_, err := c.kubectl(ctx, "apply", "--server-side", "--force-conflicts", "-f", crd)
		return unknown != nil, err
	}
	out, err := c.kubectl(ctx, "apply", "-f", crd)
	return strings.Contains(out, "created"), err
}

// established waits until the API server serves a CRD. For a moment after its creation a CRD has no list of conditions,
// and kubectl wait fails instead of waiting.
func (c *Cluster) established(ctx context.Context, crd string) error {
	return poll(ctx, 50*time.Millisecond, func() error {
		_, err := c.kubectl(ctx, "wait", "--for=condition=Established", "--timeout=2m", "-f", crd)
		return err
	})
}

// basePaths are the API paths of the kinds in base.yaml.
var basePaths = map[string]string{
	"Node":               "/api/v1/nodes/",
	"StorageClass":       "/apis/storage.k8s.io/v1/storageclasses/",
	"ClusterRole":        "/apis/rbac.authorization.k8s.io/v1/clusterroles/",
	"ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/",
}

// applyBase applies base.yaml. kubectl would need half a second to discover the paths that are known here.
func (c *Cluster) applyBase(ctx context.Context, client *http.Client) error {
	for document := range strings.SplitSeq(base, "\n---\n") {
		var object struct {
			Kind     string
			Metadata struct{ Name string }
		}
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			return err
		}
		url := c.api(basePaths[object.Kind]+object.Metadata.Name) + "?fieldManager=workshop&force=true"
		request, err := http.NewRequestWithContext(ctx, http.MethodPatch, url, strings.NewReader(document))
		if err != nil {
			return err
		}
		request.Header.Set("Content-Type", "application/apply-patch+yaml")
		if _, err := answer(client, request); err != nil {
			return fmt.Errorf("apply %s %s: %w", object.Kind, object.Metadata.Name, err)
		}
	}
	return nil
}

// api returns the URL of a path of the API server.
func (c *Cluster) api(path string) string {
	return fmt.Sprintf("https://%s:%d%s", loopback, c.ports["apiserver"], path)
}

// waitUsable waits until pods can be made. They run when the nodes are ready, which launch has seen.
func (c *Cluster) waitUsable(ctx context.Context) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	err = poll(ctx, 50*time.Millisecond, func() error {
		return healthy(ctx, client, c.api("/api/v1/namespaces/default/serviceaccounts/default"))
	})
	if err != nil {
		return fmt.Errorf("wait for the default service account: %w", err)
	}
	return nil
}

// works returns an error unless a component does its work.
func (c *Cluster) works(ctx context.Context, client *http.Client, p component) error {
	if p.health != "" {
		return healthy(ctx, client, p.health)
	}
	ready, total, err := c.nodes(ctx, client)
	if err == nil && (ready < total || total == 0) {
		err = fmt.Errorf("%d of %d nodes are ready", ready, total)
	}
	return err
}

// nodes counts the nodes that are ready, and all nodes. A node that the reader cordoned or tainted is ready.
func (c *Cluster) nodes(ctx context.Context, client *http.Client) (ready, total int, err error) {
	body, err := get(ctx, client, c.api("/api/v1/nodes"))
	if err != nil {
		return 0, 0, err
	}
	type taint struct{ Key string }
	type condition struct{ Type, Status string }
	var list struct {
		Items []struct {
			Spec   struct{ Taints []taint }
			Status struct{ Conditions []condition }
		}
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return 0, 0, err
	}
	for _, node := range list.Items {
		waits := slices.ContainsFunc(node.Spec.Taints, func(t taint) bool { return t.Key == "node.kubernetes.io/not-ready" })
		if !waits && slices.Contains(node.Status.Conditions, condition{"Ready", "True"}) {
			ready++
		}
	}
	return ready, len(list.Items), nil
}

// Down ends every process of the cluster, also when its folder was removed, and removes its files. It also removes a
// cluster that the lab keeps.
func (c *Cluster) Down(ctx context.Context) error {
	if _, err := os.Stat(c.state); errors.Is(err, os.ErrNotExist) && len(c.strays()) == 0 {
		return nil
	}
	if err := DownKept(ctx, c.bin, c.Kept()); err != nil {
		return err
	}
	release, err := c.lock(ctx)
	if err != nil {
		return err
	}
	defer release()
	if err := c.endUnknown(); err != nil {
		return err
	}
	if err := c.stopAll(); err != nil {
		return err
	}
	for _, path := range []string{c.dir(), c.usersDir(), c.PageLogs(), c.KubectlCache(), c.Kubeconfig(),
		c.lockFile()} { // the lock last
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	_ = os.Remove(c.state) // unless the folder has other files
	return nil
}

// kubectl runs the pinned kubectl as the administrator. It does not use the lens, which may not run yet.
func (c *Cluster) kubectl(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(c.bin, "kubectl"), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.componentKubeconfig("admin"),
		"KUBECACHEDIR="+filepath.Join(c.dir(), "cache"), "KUBERC=off") // without the reader's preferences
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("kubectl %s: %w\n%s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return string(out), nil
}

// writeFiles makes the folders and the files that do not depend on ports.
func (c *Cluster) writeFiles() error {
	for _, dir := range []string{filepath.Join(c.dir(), "logs"), filepath.Join(c.dir(), "etcd"), c.PageLogs()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	return errors.Join(
		os.WriteFile(filepath.Join(c.dir(), "audit-policy.yaml"), []byte(auditPolicy), 0o600),
		os.WriteFile(filepath.Join(c.dir(), "kwok.yaml"), []byte(stages), 0o600),
		c.ensurePKI(filepath.Join(c.dir(), "pki")),
	)
}

// client returns an HTTP client with the administrator's certificate and a certificate for etcd. Each server names the
// authority that it accepts, and gets the matching certificate.
func (c *Cluster) client() (*http.Client, error) {
	dir := filepath.Join(c.dir(), "pki")
	config := &tls.Config{RootCAs: x509.NewCertPool()}
	for _, name := range []string{"admin", "etcd-client"} {
		cert, err := tls.LoadX509KeyPair(filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key"))
		if err != nil {
			return nil, err
		}
		config.Certificates = append(config.Certificates, cert)
	}
	for _, name := range []string{"ca", "etcd-ca"} {
		ca, err := os.ReadFile(filepath.Join(dir, name+".crt"))
		if err != nil {
			return nil, err
		}
		config.RootCAs.AppendCertsFromPEM(ca)
	}
	return &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{TLSClientConfig: config}}, nil
}

func healthy(ctx context.Context, client *http.Client, url string) error {
	_, err := get(ctx, client, url)
	return err
}

func get(ctx context.Context, client *http.Client, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	return answer(client, request)
}

// answer sends a request and returns the body of the response. A code other than 2xx is an error.
func answer(client *http.Client, request *http.Request) ([]byte, error) {
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode/100 != 2 {
		err = responseError{response.StatusCode, fmt.Sprintf("%s %s: %s", request.Method, request.URL, response.Status)}
	}
	return body, err
}

// A responseError is a response with a code other than 2xx.
type responseError struct {
	code int
	text string
}

func (e responseError) Error() string { return e.text }

// Is makes a response that reports a missing object fs.ErrNotExist.
func (e responseError) Is(target error) bool {
	return target == fs.ErrNotExist && e.code == http.StatusNotFound
}
