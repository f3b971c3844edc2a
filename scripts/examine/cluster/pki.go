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

	"example.com/operator-workshop/scripts/examine/pki"
)

// validity is how long a certificate of a local cluster lasts. Most clusters are removed long before; a forgotten
// cluster must still start.
const validity = 10 * 365 * 24 * time.Hour

// authorities are the same as in kubeadm: for the API server with its clients, for etcd, and for the proxies whose
// headers the API server trusts. A server does not accept a certificate of another authority.
var authorities = map[string]string{
	"ca":             "operator-workshop",
	"etcd-ca":        "operator-workshop-etcd",
	"front-proxy-ca": "operator-workshop-front-proxy",
}

// A leaf is a certificate by the name of its file.
type leaf struct {
	authority, file, user string
	groups                []string
	ips                   []net.IP
}

func (l leaf) subject() pki.Subject {
	return pki.Subject{User: l.user, Groups: l.groups, IPs: l.ips, Names: serverNames}
}

// leaves are the certificates of a cluster: one for each server, one for each client.
var leaves = []leaf{
	{"etcd-ca", "etcd", "etcd", nil, loopbacks},
	{"etcd-ca", "etcd-client", "kube-apiserver-etcd-client", nil, nil},
	{"ca", "apiserver", "kube-apiserver", nil, append(loopbacks, net.ParseIP(firstServiceIP))},
	{"ca", "loopback", "loopback", nil, loopbacks},
	{"front-proxy-ca", "front-proxy", "front-proxy-client", nil, nil},
	{"ca", "admin", adminUser, []string{"system:masters"}, nil},
	{"ca", "controller-manager", "system:kube-controller-manager", nil, nil},
	{"ca", "scheduler", "system:kube-scheduler", nil, nil},
	{"ca", "kwok", "system:kwok-controller", nil, nil},
}

var (
	loopbacks   = []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	serverNames = []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
		"kubernetes.default.svc.cluster.local"}
)

// ensurePKI makes the keys and certificates of the cluster in the folder dir when they are missing or incomplete. It
// makes all of them or none.
func (c *Cluster) ensurePKI(dir string) error {
	_, err := os.Stat(dir)
	if err == nil {
		if err = checkPKI(dir); err == nil {
			return nil
		}
		c.report("the certificates in %s are not whole, or of an older workshop, making all of them anew: %v", dir, err)
	}
	if err := errors.Join(os.RemoveAll(dir), os.RemoveAll(dir+".new"), os.Mkdir(dir+".new", 0o700)); err != nil {
		return err
	}
	if err := writePKI(dir + ".new"); err != nil {
		return err
	}
	return os.Rename(dir+".new", dir)
}

// checkPKI looks for traces of an interrupted removal or a power cut: missing and empty files.
func checkPKI(dir string) error {
	for _, leaf := range leaves {
		ca, err := readAuthority(dir, leaf.authority)
		if err != nil {
			return err
		}
		cert, err := tls.LoadX509KeyPair(filepath.Join(dir, leaf.file+".crt"), filepath.Join(dir, leaf.file+".key"))
		if err == nil {
			err = ca.Verify(cert.Leaf)
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
	all := map[string]*pki.Authority{}
	for name := range authorities {
		ca, err := newAuthority(dir, name)
		if err != nil {
			return err
		}
		all[name] = ca
	}
	for _, leaf := range leaves {
		if err := issueLeaf(dir, all[leaf.authority], leaf); err != nil {
			return fmt.Errorf("issue the certificate of %s: %w", leaf.user, err)
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

// issueLeaf makes a certificate and its key, and their files.
func issueLeaf(dir string, ca *pki.Authority, l leaf) error {
	cert, key, err := ca.Issue(l.subject())
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(filepath.Join(dir, l.file+".crt"), cert, 0o600),
		os.WriteFile(filepath.Join(dir, l.file+".key"), key, 0o600))
}

// newAuthority makes an authority of a cluster, and its files.
func newAuthority(dir, name string) (*pki.Authority, error) {
	ca, err := pki.New(authorities[name], validity)
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
