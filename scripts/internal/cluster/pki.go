package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"example.com/operator-workshop/scripts/internal/pki"
)

// validity is how long a certificate of a local cluster lasts. Such a cluster is thrown away long
// before; one that was forgotten must still start.
const validity = 10 * 365 * 24 * time.Hour

// The authorities of a cluster are those that kubeadm makes. With a single one a user of the API server would be a user
// of etcd, who reads every Secret there, and a user called front-proxy-client could name himself as anybody.
const (
	clusterCA    = "ca"
	etcdCA       = "etcd-ca"
	frontProxyCA = "front-proxy-ca"
)

var authorities = []string{clusterCA, etcdCA, frontProxyCA}

// A leaf is a certificate by the name of its file, and the authority that signs it.
type leaf struct {
	authority  string
	file, user string
	groups     []string
	ips        []net.IP
}

func (l leaf) subject() pki.Subject {
	return pki.Subject{User: l.user, Groups: l.groups, IPs: l.ips, Names: serverNames}
}

// leaves are the certificates of a cluster: one for each server, one for each client.
var leaves = []leaf{
	{etcdCA, "etcd", "etcd", nil, loopbacks},
	{etcdCA, "etcd-client", "kube-apiserver-etcd-client", nil, nil},
	{clusterCA, "apiserver", "kube-apiserver", nil, append(loopbacks, net.ParseIP(firstServiceIP))},
	{clusterCA, "loopback", "loopback", nil, loopbacks},
	{frontProxyCA, "front-proxy", "front-proxy-client", nil, nil},
	{clusterCA, "admin", adminUser, []string{"system:masters"}, nil},
	{clusterCA, "controller-manager", "system:kube-controller-manager", nil, nil},
	{clusterCA, "scheduler", "system:kube-scheduler", nil, nil},
	{clusterCA, "kwok", "system:kwok-controller", nil, nil},
}

var (
	loopbacks   = []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	serverNames = []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
		"kubernetes.default.svc.cluster.local"}
)

// ensurePKI makes the keys and certificates of the cluster in the folder dir when they are missing, or
// not whole. They come into being all together or not at all.
func (c *Cluster) ensurePKI(dir string) error {
	_, err := os.Stat(dir)
	if err == nil {
		if err = checkPKI(dir); err == nil {
			return nil
		}
		c.report("the certificates in %s are not whole, making all of them anew: %v", dir, err)
	}
	if err := errors.Join(os.RemoveAll(dir), os.RemoveAll(dir+".new"), os.Mkdir(dir+".new", 0o700)); err != nil {
		return err
	}
	if err := writePKI(dir + ".new"); err != nil {
		return err
	}
	return os.Rename(dir+".new", dir)
}

// checkPKI looks for what an interrupted removal or a power cut leaves: missing and empty files.
func checkPKI(dir string) error {
	signed := map[string]*pki.Authority{}
	for _, name := range authorities {
		var err error
		if signed[name], err = readAuthority(dir, name); err != nil {
			return err
		}
	}
	for _, leaf := range leaves {
		cert, err := tls.LoadX509KeyPair(filepath.Join(dir, leaf.file+".crt"), filepath.Join(dir, leaf.file+".key"))
		if err == nil {
			err = signed[leaf.authority].Verify(cert.Leaf)
		}
		if err != nil {
			return fmt.Errorf("%s.crt: %w", leaf.file, err)
		}
	}
	key, err := readPEM(filepath.Join(dir, "service-account.key"))
	if err != nil {
		return err
	}
	if _, err := x509.ParseECPrivateKey(key); err != nil {
		return fmt.Errorf("service-account.key: %w", err)
	}
	_, err = readPEM(filepath.Join(dir, "service-account.pub"))
	return err
}

// writePKI makes the authorities, all leaves and the key that signs service account tokens.
func writePKI(dir string) error {
	signing := map[string]*pki.Authority{}
	for _, name := range authorities {
		var err error
		if signing[name], err = newAuthority(dir, name); err != nil {
			return err
		}
	}
	for _, leaf := range leaves {
		cert, key, err := signing[leaf.authority].Issue(leaf.subject())
		if err != nil {
			return fmt.Errorf("issue the certificate of %s: %w", leaf.user, err)
		}
		if err := errors.Join(os.WriteFile(filepath.Join(dir, leaf.file+".crt"), cert, 0o600),
			os.WriteFile(filepath.Join(dir, leaf.file+".key"), key, 0o600)); err != nil {
			return err
		}
	}
	key, err := pki.NewKey()
	if err != nil {
		return err
	}
	private, err := pki.EncodeKey(key)
	if err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(filepath.Join(dir, "service-account.key"), private, 0o600),
		os.WriteFile(filepath.Join(dir, "service-account.pub"), pki.Encode("PUBLIC KEY", public), 0o600))
}

// newAuthority makes an authority of a cluster, and its files.
func newAuthority(dir, name string) (*pki.Authority, error) {
	ca, err := pki.New("operator-workshop-"+name, validity)
	if err != nil {
		return nil, err
	}
	private, err := ca.KeyPEM()
	if err != nil {
		return nil, err
	}
	return ca, errors.Join(os.WriteFile(filepath.Join(dir, name+".key"), private, 0o600),
		os.WriteFile(filepath.Join(dir, name+".crt"), ca.PEM(), 0o600))
}

// readAuthority loads an authority of an existing cluster.
func readAuthority(dir, name string) (*pki.Authority, error) {
	cert, err := os.ReadFile(filepath.Join(dir, name+".crt"))
	if err != nil {
		return nil, err
	}
	key, err := os.ReadFile(filepath.Join(dir, name+".key"))
	if err != nil {
		return nil, err
	}
	ca, err := pki.Parse(cert, key)
	if err != nil {
		return nil, fmt.Errorf("%s.crt, %s.key: %w", name, name, err)
	}
	return ca, nil
}

func readPEM(path string) ([]byte, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, fmt.Errorf("%s holds no PEM block", path)
	}
	return block.Bytes, nil
}
