// Package proxy is a reverse proxy between operators and the API server. It records every request in a ledger, and
// disturbs those that a rule matches. All other traffic passes unchanged: watches as streams, answers in any encoding
// and compression.
package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"example.com/operator-workshop/scripts/examine/ledger"
	"example.com/operator-workshop/scripts/examine/loop"
	"example.com/operator-workshop/scripts/examine/pki"
	"example.com/operator-workshop/scripts/examine/wire"
)

// maxStreams is how many requests one connection carries at once, as with kube-apiserver.
const maxStreams = 100

// A Proxy listens on 127.0.0.1. Only clients with one of its kubeconfigs can use it.
type Proxy struct {
	ledger *ledger.Ledger
	ca     *pki.Authority
	url    string
	cert   tls.Certificate // of a proxy that Start has made
	dir    string          // of the kubeconfigs

	mu      sync.Mutex
	servers []*http.Server
	clients map[string]*client
	front   *front    // in place of clients
	ways    []*client // also replaced ones
	faults  []*Fault  // installed, in the order in which they act
	all     []*Fault  // also removed ones
	streams map[*Stream]bool
	broken  error // panics of rules
	closed  bool
	serving sync.WaitGroup
}

// A client is one user of the proxy.
type client struct {
	name   string
	target *url.URL
	// h2 carries all requests except those that switch protocols, which HTTP/2 cannot do.
	h2, h1 *http.Transport
}

// Start returns a proxy that writes into the given ledger. Close ends it. It puts its kubeconfigs into a new folder
// in dir, or in the system's folder for temporary files when dir is empty.
func Start(l *ledger.Ledger, dir string) (*Proxy, error) {
	ca, err := pki.New("operator-workshop-lab", validity)
	if err != nil {
		return nil, fmt.Errorf("make the proxy's certificates: %w", err)
	}
	certPEM, keyPEM, err := ca.Issue(pki.Subject{User: "operator-workshop-lab-proxy",
		IPs: []net.IP{net.IPv4(127, 0, 0, 1), net.IP(Service.AsSlice())}, Names: serviceNames})
	if err != nil {
		return nil, fmt.Errorf("make the proxy's certificates: %w", err)
	}
	p := &Proxy{ledger: l, ca: ca, clients: map[string]*client{}, streams: map[*Stream]bool{}}
	if p.cert, err = tls.X509KeyPair(certPEM, keyPEM); err != nil {
		return nil, fmt.Errorf("make the proxy's certificates: %w", err)
	}
	if p.dir, err = os.MkdirTemp(dir, "workshop-proxy-"); err != nil {
		return nil, err
	}
	err = p.serve("127.0.0.1:0", &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{p.cert},
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: ca.Pool()})
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(p.dir))
	}
	return p, nil
}

// serve begins to listen.
func (p *Proxy) serve(address string, trust *tls.Config) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("open the proxy's port: %w", err)
	}
	p.url = "https://" + listener.Addr().String()
	p.serveAt(listener, trust, nil)
	return nil
}

// serveAt answers at a listener, until it or the proxy is closed. All connections are those of a client; nil when each
// proves who it is.
func (p *Proxy) serveAt(listener net.Listener, trust *tls.Config, of *client) {
	server := &http.Server{
		Handler:           p,
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          discarded,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, p.connected(c, of))
		},
		TLSConfig: trust,
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.servers = append(p.servers, server)
	p.serving.Go(func() { _ = server.ServeTLS(listener, "", "") }) // returns when the server is closed
}

// discarded takes the errors of clients, which are killed on purpose.
var discarded = log.New(io.Discard, "", 0)

// A connection is the connection of a request, and its client.
type connection struct {
	net.Conn
	peer   *loop.Connection
	client *client // nil when it proves who it is
}

func (p *Proxy) connected(c net.Conn, of *client) connection {
	if !p.ledger.IsCopied() {
		return connection{Conn: c, client: of}
	}
	port := func(a net.Addr) int { return a.(*net.TCPAddr).Port }
	return connection{c, loop.Connect(port(c.RemoteAddr()), port(c.LocalAddr())), of}
}

// validity is longer than any run of the lab. The authority's key is never written to a file.
const validity = 7 * 24 * time.Hour

// connKey is the key of the connection in a request's context.
type connKey struct{}

// Close ends every request, accepts no more, waits until the whole proxy has ended, and removes its files. It also
// returns an error when the function of a rule panicked.
func (p *Proxy) Close() error {
	p.Clear()
	p.mu.Lock()
	p.closed = true
	var err error
	for _, server := range p.servers {
		if e := server.Close(); !errors.Is(e, net.ErrClosed) { // the listener of a pod may be closed with its program
			err = errors.Join(err, e)
		}
	}
	p.mu.Unlock()
	p.serving.Wait()
	for _, c := range p.ways {
		c.h2.CloseIdleConnections()
		c.h1.CloseIdleConnections()
	}
	return errors.Join(err, p.broken, os.RemoveAll(p.dir))
}

var clientName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$`)

// AddClient allows a client to use the proxy and returns the path of its kubeconfig, which only the owner of this
// process can read. The ledger uses this name for the client; the API server sees the user of cfg, whose address the
// proxy uses.
func (p *Proxy) AddClient(name string, cfg *rest.Config) (kubeconfig string, err error) {
	if !clientName.MatchString(name) {
		return "", fmt.Errorf("client name %q: use letters, digits, '-', '_' and '.', at most 63", name)
	}
	c, err := newClient(name, cfg)
	if err != nil {
		return "", fmt.Errorf("the way of %s to the API server: %w", name, err)
	}
	cert, key, err := p.ca.Issue(pki.Subject{User: name})
	if err != nil {
		return "", fmt.Errorf("make the certificate of %s: %w", name, err)
	}
	out := clientcmdapi.NewConfig()
	out.Clusters["lab"] = &clientcmdapi.Cluster{Server: p.url, CertificateAuthorityData: p.ca.PEM()}
	out.AuthInfos[name] = &clientcmdapi.AuthInfo{ClientCertificateData: cert, ClientKeyData: key}
	out.Contexts["lab"] = &clientcmdapi.Context{Cluster: "lab", AuthInfo: name}
	out.CurrentContext = "lab"
	kubeconfig = filepath.Join(p.dir, name+".kubeconfig")
	if err := clientcmd.WriteToFile(*out, kubeconfig); err != nil { // mode 0600
		return "", err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clients[name], p.ways = c, append(p.ways, c)
	return kubeconfig, nil
}

func newClient(name string, cfg *rest.Config) (*client, error) {
	target, _, err := rest.DefaultServerUrlFor(cfg)
	if err != nil {
		return nil, err
	}
	trust, err := rest.TLSConfigFor(cfg)
	if err != nil {
		return nil, err
	}
	// The transport must not add compression: the API server must get the client's own Accept-Encoding.
	h1 := &http.Transport{TLSClientConfig: trust, DisableCompression: true,
		TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{}}
	h2 := &http.Transport{TLSClientConfig: trust.Clone(), DisableCompression: true, ForceAttemptHTTP2: true,
		HTTP2: &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second}}
	return &client{name, &url.URL{Scheme: target.Scheme, Host: target.Host}, h2, h1}, nil
}

// ServeHTTP handles one request of a client.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.enter()
	defer p.leave()
	c, user, known := p.clientOf(r)
	x := &Exchange{proxy: p, client: c, ctx: r.Context(), keepsBody: known == byCertificate, token: known == byToken}
	x.id = p.ledger.Begin(user, wire.Of(r), peerOf(r, user))
	x.change(func(e *ledger.Entry) { e.Unknown = known != byCertificate })
	defer p.ledger.End(x.id)
	(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(c.target)
			if p.front != nil {
				p.front.identify(r)
			}
		},
		Transport:     x,
		FlushInterval: -1, // pass on every event of a watch at once
		ErrorHandler:  x.abort,
		ErrorLog:      discarded,
	}).ServeHTTP(w, r)
}

// enter accepts a request, unless the proxy is closed.
func (p *Proxy) enter() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		panic(http.ErrAbortHandler)
	}
	p.serving.Add(1)
}

// An identity is the way in which a client proves who it is.
type identity int

const (
	anonymous     identity = iota
	byToken                // the API server examines it
	byCertificate          // an authority has signed it
)

// clientOf returns the client of the API server for a request, and the user who sent it.
func (p *Proxy) clientOf(r *http.Request) (c *client, user string, known identity) {
	if p.front != nil {
		return p.front.clientOf(r)
	}
	if of, ok := r.Context().Value(connKey{}).(connection); ok && of.client != nil {
		return of.client, of.client.name, byCertificate
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	c = p.clients[r.TLS.PeerCertificates[0].Subject.CommonName]
	return c, c.name, byCertificate
}

func peerOf(r *http.Request, user string) *loop.Peer {
	peer := &loop.Peer{Agent: loop.Cut(r.UserAgent()), User: user}
	if c, ok := r.Context().Value(connKey{}).(connection); ok {
		peer.Connection = c.peer
	}
	return peer
}

// leave keeps the panic of a rule's function, which net/http would swallow.
func (p *Proxy) leave() {
	defer p.serving.Done()
	v := recover()
	if v == nil {
		return
	}
	if err, _ := v.(error); !errors.Is(err, http.ErrAbortHandler) {
		p.mu.Lock()
		p.broken = errors.Join(p.broken, fmt.Errorf("panic in the proxy: %v\n%s", v, debug.Stack()))
		p.mu.Unlock()
	}
	panic(http.ErrAbortHandler)
}

// abort ends a request without an answer. When the API server cannot be reached, or ends, the client loses its
// connection, as it would without a proxy. When the API server resets one stream, the client loses only that stream.
func (x *Exchange) abort(_ http.ResponseWriter, r *http.Request, err error) {
	x.change(func(e *ledger.Entry) { e.Code = 0 })
	oneStream := errors.Is(err, errDropped) || strings.Contains(err.Error(), "stream error:")
	if r.Context().Err() == nil && !oneStream {
		sever(r.Context())
	}
	panic(http.ErrAbortHandler)
}

// sever resets the connection of a request, with all its other requests.
func sever(ctx context.Context) {
	c, _ := ctx.Value(connKey{}).(connection)
	secure, ok := c.Conn.(*tls.Conn)
	if !ok {
		return
	}
	if raw, ok := secure.NetConn().(*net.TCPConn); ok {
		_ = raw.SetLinger(0) // a reset, not an orderly end
		_ = raw.Close()
	}
}
