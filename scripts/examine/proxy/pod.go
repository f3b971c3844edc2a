package proxy

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"

	"k8s.io/client-go/rest"
)

// Service is the address of the API server in a pod: that of the Service kubernetes.
var Service = netip.AddrFrom4([4]byte{10, 96, 0, 1})

var serviceNames = []string{"kubernetes", "kubernetes.default", "kubernetes.default.svc",
	"kubernetes.default.svc.cluster.local"}

// Authority is the certificate of the authority that has signed the certificate of the proxy.
func (p *Proxy) Authority() []byte { return p.ca.PEM() }

// ServePod answers the requests of a pod at a listener inside it, until the listener is closed. The ledger uses the name
// for its client. The API server gets the credentials that the client sends, such as the token of a service account.
func (p *Proxy) ServePod(name string, server *rest.Config, listener net.Listener) error {
	anonymous := rest.AnonymousClientConfig(server)
	c, err := newClient(name, anonymous)
	if err != nil {
		return fmt.Errorf("the way of %s to the API server: %w", name, err)
	}
	p.mu.Lock()
	p.ways = append(p.ways, c)
	p.mu.Unlock()
	p.serveAt(listener, &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{p.cert}}, c)
	return nil
}
