package controller

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// A wire carries the requests of an operator to the API server. It counts them, and a test can hold them up.
type wire struct {
	next http.RoundTripper

	mu     sync.Mutex
	sent   map[string]int
	denied []string
	before func(what string) // is called before each request
}

// describe describes a request, such as "POST jobs " or "PUT databasebackups/status orders"; a watch, a list and a
// discovery request have no name.
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
	what := describe(r)
	w.mu.Lock()
	if w.sent == nil {
		w.sent = map[string]int{}
	}
	w.sent[what]++
	before := w.before
	w.mu.Unlock()
	if before != nil {
		before(what)
	}
	response, err := w.next.RoundTrip(r)
	if err == nil && response.StatusCode == http.StatusForbidden {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.denied = append(w.denied, r.Method+" "+r.URL.Path)
	}
	return response, err
}

// requests returns how many requests of each kind were sent.
func (w *wire) requests() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.sent)
}

// denials are the requests that the API server forbade.
func (w *wire) denials() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.denied)
}

func (w *wire) between(before func(what string)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.before = before
}
