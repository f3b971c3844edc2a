package pki

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"slices"
	"testing"
	"time"
)

func authority(t *testing.T, validity time.Duration) *Authority {
	t.Helper()
	a, err := New("test", validity)
	if err != nil {
		t.Fatal(err)
	}
	key, err := a.KeyPEM()
	if err != nil {
		t.Fatal(err)
	}
	if a, err = Parse(a.PEM(), key); err != nil { // a parsed authority signs like the original authority
		t.Fatal(err)
	}
	return a
}

func issue(t *testing.T, a *Authority, s Subject) *x509.Certificate {
	t.Helper()
	cert, key, err := a.Issue(s)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	return pair.Leaf
}

func TestAClientIsKnownToItsAuthorityAlone(t *testing.T) {
	a := authority(t, time.Hour)
	cert := issue(t, a, Subject{User: "somebody", Groups: []string{"all"}})
	if err := a.Verify(cert); err != nil {
		t.Error(err)
	}
	if cert.Subject.CommonName != "somebody" || !slices.Equal(cert.Subject.Organization, []string{"all"}) {
		t.Errorf("it is for %v", cert.Subject)
	}
	if slices.Contains(cert.ExtKeyUsage, x509.ExtKeyUsageServerAuth) {
		t.Error("a client without addresses can serve")
	}
	if authority(t, time.Hour).Verify(cert) == nil {
		t.Error("another authority of the same name knows it")
	}
}

func TestAServerIsKnownByItsAddress(t *testing.T) {
	a := authority(t, time.Hour)
	cert := issue(t, a, Subject{User: "server", IPs: []net.IP{net.IPv4(127, 0, 0, 1)}, Names: []string{"localhost"}})
	for name, known := range map[string]bool{"127.0.0.1": true, "localhost": true, "127.0.0.2": false} {
		if _, err := cert.Verify(x509.VerifyOptions{Roots: a.Pool(), DNSName: name}); (err == nil) != known {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestACertificateEndsWithItsAuthority(t *testing.T) {
	a := authority(t, -time.Minute)
	if a.Verify(issue(t, a, Subject{User: "somebody"})) == nil {
		t.Error("it is valid after the end of its authority")
	}
}

func TestWhatIsNoAuthority(t *testing.T) {
	if _, err := Parse(nil, nil); err == nil {
		t.Error("nothing is an authority")
	}
}
