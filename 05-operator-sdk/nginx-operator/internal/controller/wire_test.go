package controller

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
	used      map[permission]bool
	denied    []string
	interfere interference
}

// An interference intercepts a request: it may act before it passes the request on, or answer it. Examples of what:
// "PATCH services site", "PUT memcacheds/status site".
type interference func(what string, pass func() (*http.Response, error)) (*http.Response, error)

// A permission is an action that a role must allow.
type permission struct{ group, resource, verb string }

// asked describes a request, and returns the permission that it needs; a watch and a list have no name. ok is false
// for a request that is not about objects, such as discovery.
func asked(r *http.Request) (what string, needs permission, ok bool) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case parts[0] == "api" && len(parts) > 2:
		parts = parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		needs.group, parts = parts[1], parts[3:]
	default:
		return r.Method + " " + r.URL.Path, needs, false
	}
	if parts[0] == "namespaces" && len(parts) > 2 {
		parts = parts[2:]
	}
	name := ""
	needs.resource = parts[0]
	if len(parts) > 1 {
		name = parts[1]
	}
	if len(parts) > 2 {
		needs.resource += "/" + parts[2]
	}
	verbs := map[string]string{"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "GET": "get"}
	method := r.Method
	needs.verb = verbs[method]
	if method == http.MethodGet && name == "" {
		method, needs.verb = "LIST", "list"
		if r.URL.Query().Get("watch") != "" {
			method, needs.verb = "WATCH", "watch"
		}
	}
	return strings.TrimSpace(method + " " + needs.resource + " " + name), needs, true
}

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	what, needs, ok := asked(r)
	w.mu.Lock()
	if w.sent == nil {
		w.sent, w.used = map[string]int{}, map[permission]bool{}
	}
	w.sent[what]++
	if ok {
		w.used[needs] = true
	}
	interfere := w.interfere
	w.mu.Unlock()
	pass := func() (*http.Response, error) { return w.next.RoundTrip(r) }
	if interfere == nil || needs.verb == "watch" {
		interfere = func(_ string, pass func() (*http.Response, error)) (*http.Response, error) { return pass() }
	}
	response, err := interfere(what, pass)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil && response.StatusCode == http.StatusForbidden {
		w.denied = append(w.denied, what)
	}
	if needs.verb == "watch" && (err != nil || response.StatusCode != http.StatusOK) {
		w.sent[what]-- // an API server with a new CRD may refuse the first watches
	}
	return response, err
}

// writes counts the writes, without events; optionally only those that begin with text.
func (w *wire) writes(text ...string) (n int) {
	for what, count := range w.requests() {
		wanted := len(text) == 0 || strings.HasPrefix(what, text[0])
		if verb, _, _ := strings.Cut(what, " "); wanted && !slices.Contains([]string{"GET", "LIST", "WATCH"}, verb) &&
			what != "POST events" {
			n += count
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

func (w *wire) permissions() map[permission]bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.used)
}

func (w *wire) refused() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.denied)
}

func (w *wire) between(m interference) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.interfere = m
}
