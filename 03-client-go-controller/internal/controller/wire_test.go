package controller

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A wire carries the requests of one controller to the API server. It counts them, and a test can intercept them.
// The controller sees the MyWebs, ConfigMaps and Deployments of one namespace only, so that tests can run in
// parallel; it sees the Services of all namespaces, because node ports are shared.
type wire struct {
	namespace string
	next      http.RoundTripper

	mu     sync.Mutex
	sent   map[string]int
	meddle meddler
	frozen map[string]chan struct{} // by resource: closed when it thaws
	gone   map[string]bool          // by resource: the next watch is answered with 410
}

// A meddler intercepts a request: it may act before it passes the request on, answer it, or lose the answer.
type meddler func(r request, pass func() (*http.Response, error)) (*http.Response, error)

// A request has the parts of an HTTP request that tests need. kind is like "PATCH services", "PUT mywebs/status".
type request struct {
	*http.Request
	kind, resource, name string
}

func describe(r *http.Request) request {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	parts = parts[2:] // api/v1
	if r.URL.Path[:6] == "/apis/" {
		parts = parts[1:] // apis/group/version
	}
	if parts[0] == "namespaces" && len(parts) > 2 {
		parts = parts[2:]
	}
	verb := r.Method
	if len(parts) == 1 && verb == http.MethodGet {
		verb = "LIST"
		if r.URL.Query().Get("watch") != "" {
			verb = "WATCH"
		}
	}
	described := request{Request: r, kind: verb + " " + parts[0], resource: parts[0]}
	if len(parts) > 1 {
		described.name = parts[1]
	}
	if len(parts) > 2 {
		described.kind += "/" + parts[2]
	}
	return described
}

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	req := describe(r)
	isNarrow := req.resource == "services" || strings.Contains(r.URL.Path, "/namespaces/")
	if verb, _, _ := strings.Cut(req.kind, " "); (verb == "WATCH" || verb == "LIST") && !isNarrow {
		r = r.Clone(r.Context())
		r.URL.Path = strings.TrimSuffix(r.URL.Path, req.resource) + "namespaces/" + w.namespace + "/" + req.resource
	}
	if strings.HasPrefix(req.kind, "WATCH") {
		return w.watch(r, req.resource)
	}
	pass := func() (*http.Response, error) { return w.next.RoundTrip(r) }
	if req.resource == "events" {
		return pass()
	}
	meddle := w.count(req.kind)
	if meddle != nil {
		return meddle(req, pass)
	}
	return pass()
}

// count counts a request and returns the meddler that intercepts it.
func (w *wire) count(kind string) meddler {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sent == nil {
		w.sent = map[string]int{}
	}
	w.sent[kind]++
	return w.meddle
}

// requests returns how many requests of each kind were sent, without watches and events.
func (w *wire) requests() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.sent)
}

// total returns how many requests were sent, without watches and events.
func (w *wire) total() (n int) {
	for _, count := range w.requests() {
		n += count
	}
	return n
}

// forget resets the counts.
func (w *wire) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sent = nil
}

func (w *wire) between(m meddler) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.meddle = m
}

// freeze holds back the events of the watch of a resource, until thaw.
func (w *wire) freeze(resource string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.frozen == nil {
		w.frozen = map[string]chan struct{}{}
	}
	w.frozen[resource] = make(chan struct{})
}

func (w *wire) thaw(resource string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if thawed := w.frozen[resource]; thawed != nil {
		close(thawed)
		delete(w.frozen, resource)
	}
}

// lose ends a frozen watch: the events that it held back are lost, and so old that only a new list shows the changes.
func (w *wire) lose(resource string) {
	w.mu.Lock()
	if w.gone == nil {
		w.gone = map[string]bool{}
	}
	w.gone[resource] = true
	w.mu.Unlock()
	w.thaw(resource)
}

func (w *wire) isGone(resource string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.gone[resource]
}

func (w *wire) watch(r *http.Request, resource string) (*http.Response, error) {
	if w.isGone(resource) {
		if r.URL.Query().Get("sendInitialEvents") == "" {
			return refusal(http.StatusGone, metav1.StatusReasonExpired)
		}
		w.mu.Lock()
		delete(w.gone, resource)
		w.mu.Unlock()
	}
	response, err := w.next.RoundTrip(r)
	if err == nil {
		response.Body = &slowBody{ReadCloser: response.Body, wire: w, resource: resource, closed: make(chan struct{})}
	}
	return response, err
}

// slowBody is the response body of a watch. While the watch is frozen, a read waits.
type slowBody struct {
	io.ReadCloser
	wire     *wire
	resource string
	once     sync.Once
	closed   chan struct{}
}

func (b *slowBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.wire.mu.Lock()
	thawed := b.wire.frozen[b.resource]
	b.wire.mu.Unlock()
	if thawed != nil {
		select {
		case <-thawed:
			if b.wire.isGone(b.resource) {
				return 0, io.EOF
			}
		case <-b.closed:
			return 0, io.ErrClosedPipe
		}
	}
	return n, err
}

func (b *slowBody) Close() error {
	b.once.Do(func() { close(b.closed) })
	return b.ReadCloser.Close()
}

// refusal is the answer of an API server that refuses a request.
func refusal(code int, reason metav1.StatusReason) (*http.Response, error) {
	answer := httptest.NewRecorder()
	answer.Header().Set("Content-Type", "application/json")
	answer.WriteHeader(code)
	err := json.NewEncoder(answer).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status: metav1.StatusFailure, Reason: reason, Code: int32(code)})
	return answer.Result(), err
}
