package controller_test

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// A wire carries the requests of an operator to the API server. It counts them, and a test can intercept them.
type wire struct {
	next http.RoundTripper

	mu        sync.Mutex
	sent      map[string]int
	intercept interceptFunc
}

// An interceptFunc may act before it passes a request on, answer instead, or lose the answer. Its argument what looks
// like "PATCH services site" or "PUT mywebs/status site". Watches do not come here.
type interceptFunc func(what string, pass func() (*http.Response, error)) (*http.Response, error)

// describe returns the verb, the resource and the name of a request. Watches, lists and discovery have no name.
func describe(r *http.Request) string {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	at := slices.Index(parts, "namespaces")
	if at < 0 || len(parts) < at+3 {
		return r.Method + " " + r.URL.Path
	}
	if r.Method == http.MethodGet && len(parts) == at+3 {
		verb := "LIST "
		if r.URL.Query().Get("watch") != "" {
			verb = "WATCH "
		}
		return verb + parts[at+2]
	}
	resource, name := parts[at+2], ""
	if len(parts) > at+3 {
		name = parts[at+3]
	}
	if len(parts) > at+4 {
		resource += "/" + parts[at+4]
	}
	return r.Method + " " + resource + " " + name
}

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	what, watch := describe(r), r.URL.Query().Get("watch") != ""
	w.mu.Lock()
	if w.sent == nil {
		w.sent = map[string]int{}
	}
	w.sent[what]++
	intercept := w.intercept
	w.mu.Unlock()
	pass := func() (*http.Response, error) { return w.next.RoundTrip(r) }
	if intercept != nil && !watch {
		return intercept(what, pass)
	}
	response, err := pass()
	w.mu.Lock()
	defer w.mu.Unlock()
	if watch && (err != nil || response.StatusCode != http.StatusOK) {
		w.sent[what]-- // an API server that has just installed a kind asks for a retry
	}
	return response, err
}

// writes returns the number of writes, without events, optionally only of those that begin with text.
func (w *wire) writes(text ...string) (n int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for what, count := range maps.All(w.sent) {
		wanted := len(text) == 0 || strings.HasPrefix(what, text[0])
		if verb, _, _ := strings.Cut(what, " "); wanted && !slices.Contains([]string{"GET", "LIST", "WATCH"}, verb) &&
			what != "POST events " {
			n += int64(count)
		}
	}
	return n
}

// requests returns the number of requests of each kind.
func (w *wire) requests() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.sent)
}

func (w *wire) between(f interceptFunc) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.intercept = f
}
