// Package pki makes the certificates of local control planes, and of the proxies before them.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"time"
)

// An Authority signs certificates. All of them expire together with the authority's own certificate.
type Authority struct {
	Cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// New makes an authority.
func New(name string, validity time.Duration) (*Authority, error) {
	key, err := NewKey()
	if err != nil {
		return nil, err
	}
	template, err := newTemplate(pkix.Name{CommonName: name}, time.Now().Add(validity))
	if err != nil {
		return nil, err
	}
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage |= x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	return &Authority{cert, key}, err
}

// Parse reads an authority from its certificate and its key.
func Parse(certPEM, keyPEM []byte) (*Authority, error) {
	certBlock, _ := pem.Decode(certPEM)
	keyBlock, _ := pem.Decode(keyPEM)
	if certBlock == nil || keyBlock == nil {
		return nil, errors.New("there is no PEM block")
	}
	cert, err := x509.ParseCertificate(certBlock.Bytes)
	if err != nil {
		return nil, err
	}
	key, err := x509.ParseECPrivateKey(keyBlock.Bytes)
	return &Authority{cert, key}, err
}

// A Subject is the client or server that a certificate identifies. Each subject can be a client; a subject with
// addresses can be a server, too.
type Subject struct {
	User   string
	Groups []string
	IPs    []net.IP
	Names  []string
}

// Issue makes a certificate and its key.
func (a *Authority) Issue(s Subject) (certPEM, keyPEM []byte, err error) {
	key, err := NewKey()
	if err != nil {
		return nil, nil, err
	}
	template, err := newTemplate(pkix.Name{CommonName: s.User, Organization: s.Groups}, a.Cert.NotAfter)
	if err != nil {
		return nil, nil, err
	}
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if len(s.IPs) > 0 {
		template.DNSNames, template.IPAddresses = s.Names, s.IPs
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.Cert, key.Public(), a.key)
	if err != nil {
		return nil, nil, err
	}
	keyPEM, err = EncodeKey(key)
	return Encode("CERTIFICATE", der), keyPEM, err
}

// Verify returns an error when this authority has not signed a client's certificate, or the certificate is not valid
// now.
func (a *Authority) Verify(cert *x509.Certificate) error {
	_, err := cert.Verify(x509.VerifyOptions{Roots: a.Pool(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	return err
}

// Pool returns a pool that trusts this authority alone.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.Cert)
	return pool
}

// PEM returns the authority's certificate.
func (a *Authority) PEM() []byte { return Encode("CERTIFICATE", a.Cert.Raw) }

// KeyPEM returns the authority's key.
func (a *Authority) KeyPEM() ([]byte, error) { return EncodeKey(a.key) }

// NewKey makes a key of the type that all certificates here have.
func NewKey() (*ecdsa.PrivateKey, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }

// EncodeKey encodes a key as PEM.
func EncodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	return Encode("EC PRIVATE KEY", der), err
}

// Encode makes a PEM block.
func Encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func newTemplate(subject pkix.Name, end time.Time) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	return &x509.Certificate{SerialNumber: serial, Subject: subject, NotBefore: time.Now().Add(-time.Hour), NotAfter: end,
		KeyUsage: x509.KeyUsageDigitalSignature}, err
}
