package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// validity is how long a certificate of a local cluster lasts. Such a cluster is thrown away long
// before; one that was forgotten must still start.
const validity = 10 * 365 * 24 * time.Hour

// authority is a certificate authority.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// leaves are the certificates of a cluster: one for each server, one for each client.
var leaves = []struct {
	file, user string
	groups     []string
	ips        []net.IP
}{
	{"etcd", "etcd", nil, loopbacks},
	{"apiserver", "kube-apiserver", nil, append(loopbacks, net.ParseIP(firstServiceIP))},
	{"loopback", "loopback", nil, loopbacks},
	{"front-proxy", "front-proxy-client", nil, nil},
	{"admin", adminUser, []string{"system:masters"}, nil},
	{"controller-manager", "system:kube-controller-manager", nil, nil},
	{"scheduler", "system:kube-scheduler", nil, nil},
	{"kwok", "system:kwok-controller", nil, nil},
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
	ca, err := readAuthority(dir)
	if err != nil {
		return err
	}
	for _, leaf := range leaves {
		cert, err := tls.LoadX509KeyPair(filepath.Join(dir, leaf.file+".crt"), filepath.Join(dir, leaf.file+".key"))
		if err == nil {
			err = ca.verify(cert.Leaf)
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

// writePKI makes one authority, all leaves and the key that signs service account tokens.
func writePKI(dir string) error {
	ca, err := newAuthority(dir)
	if err != nil {
		return err
	}
	for _, leaf := range leaves {
		cert, key, err := ca.issue(leaf.user, leaf.groups, leaf.ips)
		if err != nil {
			return fmt.Errorf("issue the certificate of %s: %w", leaf.user, err)
		}
		if err := errors.Join(os.WriteFile(filepath.Join(dir, leaf.file+".crt"), cert, 0o600),
			os.WriteFile(filepath.Join(dir, leaf.file+".key"), key, 0o600)); err != nil {
			return err
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	private, err := encodeKey(key)
	if err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(filepath.Join(dir, "service-account.key"), private, 0o600),
		os.WriteFile(filepath.Join(dir, "service-account.pub"), encode("PUBLIC KEY", public), 0o600))
}

func newAuthority(dir string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "operator-workshop"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(validity),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	private, err := encodeKey(key)
	if err != nil {
		return nil, err
	}
	return &authority{cert, key}, errors.Join(os.WriteFile(filepath.Join(dir, "ca.key"), private, 0o600),
		os.WriteFile(filepath.Join(dir, "ca.crt"), encode("CERTIFICATE", der), 0o600))
}

// readAuthority loads the authority of an existing cluster.
func readAuthority(dir string) (*authority, error) {
	der, err := readPEM(filepath.Join(dir, "ca.crt"))
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	if der, err = readPEM(filepath.Join(dir, "ca.key")); err != nil {
		return nil, err
	}
	key, err := x509.ParseECPrivateKey(der)
	return &authority{cert, key}, err
}

// verify tells whether a certificate is one of this authority, and valid now.
func (a *authority) verify(cert *x509.Certificate) error {
	roots := x509.NewCertPool()
	roots.AddCert(a.cert)
	_, err := cert.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	return err
}

// issue makes a certificate and its key for a user in groups; with addresses it also serves.
func (a *authority) issue(user string, groups []string, ips []net.IP) (certPEM, keyPEM []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: user, Organization: groups},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     a.cert.NotAfter,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	if len(ips) > 0 {
		template.DNSNames, template.IPAddresses = serverNames, ips
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return nil, nil, err
	}
	keyPEM, err = encodeKey(key)
	return encode("CERTIFICATE", der), keyPEM, err
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	return encode("EC PRIVATE KEY", der), err
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
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
