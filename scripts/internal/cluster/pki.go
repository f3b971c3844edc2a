package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
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

// authority is a certificate authority whose files lie in one folder as ca.crt and ca.key.
type authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// writePKI makes all keys and certificates of a cluster in dir: one authority, a certificate for each
// server, one for each client, and the key that signs service account tokens.
func writePKI(dir string) error {
	ca, err := newAuthority(dir)
	if err != nil {
		return err
	}
	local := []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	apiserver := append(local, net.ParseIP(firstServiceIP))
	names := []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
		"kubernetes.default.svc.cluster.local"}
	for _, leaf := range []struct {
		file, user string
		groups     []string
		ips        []net.IP
	}{
		{"etcd", "etcd", nil, local},
		{"apiserver", "kube-apiserver", nil, apiserver},
		{"loopback", "loopback", nil, local},
		{"front-proxy", "front-proxy-client", nil, nil},
		{"admin", adminUser, []string{"system:masters"}, nil},
		{"controller-manager", "system:kube-controller-manager", nil, nil},
		{"scheduler", "system:kube-scheduler", nil, nil},
		{"kwok", "system:kwok-controller", nil, nil},
	} {
		if err := ca.issue(leaf.file, leaf.user, leaf.groups, names, leaf.ips); err != nil {
			return fmt.Errorf("issue the certificate of %s: %w", leaf.user, err)
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return err
	}
	return errors.Join(writeKey(filepath.Join(dir, "service-account.key"), key),
		writePEM(filepath.Join(dir, "service-account.pub"), "PUBLIC KEY", public))
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
	err = errors.Join(writeKey(filepath.Join(dir, "ca.key"), key), writePEM(filepath.Join(dir, "ca.crt"), "CERTIFICATE", der))
	return &authority{dir, cert, key}, err
}

// readAuthority loads the authority of an existing cluster.
func readAuthority(dir string) (*authority, error) {
	certPEM, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
	if err != nil {
		return nil, err
	}
	keyPEM, err := os.ReadFile(filepath.Join(dir, "ca.key"))
	if err != nil {
		return nil, err
	}
	certBlock, _ := pem.Decode(certPEM)
	keyBlock, _ := pem.Decode(keyPEM)
	if certBlock == nil || keyBlock == nil {
		return nil, fmt.Errorf("%s holds no certificate authority", dir)
	}
	cert, err := x509.ParseCertificate(certBlock.Bytes)
	if err != nil {
		return nil, err
	}
	key, err := x509.ParseECPrivateKey(keyBlock.Bytes)
	return &authority{dir, cert, key}, err
}

// issue writes FILE.crt and FILE.key for a user in groups; with addresses the certificate also serves.
func (a *authority) issue(file, user string, groups, names []string, ips []net.IP) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return err
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
		template.DNSNames, template.IPAddresses = names, ips
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return err
	}
	return errors.Join(writeKey(filepath.Join(a.dir, file+".key"), key),
		writePEM(filepath.Join(a.dir, file+".crt"), "CERTIFICATE", der))
}

func writeKey(path string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return writePEM(path, "EC PRIVATE KEY", der)
}

func writePEM(path, kind string, der []byte) error {
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}
