package proxy

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"

	"k8s.io/client-go/rest"

	"example.com/operator-workshop/scripts/examine/ledger"
)

// Front has the settings of a proxy that takes the place of an API server for all its clients: they keep their
// certificates and tokens.
type Front struct {
	// Address is where the proxy listens.
	Address string
	// Certificate is shown to clients. The API server's authority signed it.
	Certificate tls.Certificate
	// Clients are the authorities of client certificates.
	Clients *x509.CertPool
	// Target is the URL of the API server; the authority in the file Authority signed its certificate.
	Target, Authority string
	// CertFile and KeyFile are the certificate of a front proxy. The API server trusts a client with it to name the
	// user in headers (kube-apiserver's flags --requestheader-…).
	CertFile, KeyFile string
}

// A front has two ways to the API server.
type front struct {
	// named is for clients with a certificate, whose names are in headers; other is for clients with a token.
	named, other *client
}

// StartFront returns a proxy that all clients of an API server can use. Close ends it.
func StartFront(l *ledger.Ledger, f Front) (*Proxy, error) {
	other := &rest.Config{Host: f.Target, TLSClientConfig: rest.TLSClientConfig{CAFile: f.Authority}}
	named := rest.CopyConfig(other)
	named.CertFile, named.KeyFile = f.CertFile, f.KeyFile
	ways := &front{}
	var err error
	if ways.named, err = newClient("named", named); err != nil {
		return nil, err
	}
	if ways.other, err = newClient("other", other); err != nil {
		return nil, err
	}
	p := &Proxy{ledger: l, front: ways, ways: []*client{ways.named, ways.other}, streams: map[*Stream]bool{}}
	return p, p.serve(f.Address, &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{f.Certificate},
		ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: f.Clients})
}

func (f *front) clientOf(r *http.Request) (c *client, user string, known identity) {
	if cert := certificate(r); cert != nil {
		return f.named, cert.Subject.CommonName, byCertificate
	}
	// As the API server reads the header: every other client is anonymous.
	kind, token, _ := strings.Cut(strings.TrimSpace(r.Header.Get("Authorization")), " ")
	if strings.EqualFold(kind, "bearer") && token != "" && !strings.HasPrefix(token, " ") {
		return f.other, "", byToken
	}
	return f.other, "", anonymous
}

func certificate(r *http.Request) *x509.Certificate {
	if len(r.TLS.VerifiedChains) == 0 {
		return nil
	}
	return r.TLS.PeerCertificates[0]
}

const remote = "X-Remote-"

// identify sets the headers with the user of a client certificate. It removes such headers that the client itself
// sent.
func (f *front) identify(r *httputil.ProxyRequest) {
	for name := range r.Out.Header {
		if strings.HasPrefix(http.CanonicalHeaderKey(name), remote) {
			delete(r.Out.Header, name)
		}
	}
	cert := certificate(r.In)
	if cert == nil {
		return
	}
	r.Out.Header.Set(remote+"User", cert.Subject.CommonName)
	r.Out.Header[remote+"Group"] = cert.Subject.Organization
	id := "X509SHA256=" + fingerprint(cert)
	r.Out.Header.Set(remote+"Extra-"+url.PathEscape("authentication.kubernetes.io/credential-id"), id)
}

// fingerprint is the API server's name for a certificate.
func fingerprint(cert *x509.Certificate) string { return fmt.Sprintf("%x", sha256.Sum256(cert.Raw)) }
