package controller

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// A wire carries the requests of an operator to the API server, and counts them.
type wire struct {
	next http.RoundTripper

	mu     sync.Mutex
	sent   map[string]int
	used   map[permission]bool
	denied []string
}

// A permission is an action that a role must allow.
type permission struct{ group, resource, verb string }

var requestInfo = request.RequestInfoFactory{
	APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}

// describe describes a request, such as "update memcacheds/status site", and returns the permission that it needs. A
// watch and a list have no name. ok is false for a request that is not about objects, such as discovery.
func describe(r *http.Request) (what string, needs permission, ok bool) {
	info, err := requestInfo.NewRequestInfo(r)
	if err != nil || !info.IsResourceRequest {
		return r.Method + " " + r.URL.Path, permission{}, false
	}
	resource := strings.TrimSuffix(info.Resource+"/"+info.Subresource, "/")
	return strings.TrimSpace(info.Verb + " " + resource + " " + info.Name),
		permission{info.APIGroup, resource, info.Verb}, true
}

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := w.next.RoundTrip(r)
	what, needs, ok := describe(r)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sent == nil {
		w.sent, w.used = map[string]int{}, map[permission]bool{}
	}
	if ok {
		w.used[needs] = true
	}
	if err == nil && response.StatusCode == http.StatusForbidden {
		w.denied = append(w.denied, what)
	}
	// An API server with a new CRD may refuse the first watches.
	if needs.verb != "watch" || err == nil && response.StatusCode == http.StatusOK {
		w.sent[what]++
	}
	return response, err
}

// writes counts the writes, without events; optionally only those that begin with text.
func (w *wire) writes(text ...string) (n int) {
	for what, count := range w.requests() {
		wanted := len(text) == 0 || strings.HasPrefix(what, text[0])
		verb, _, _ := strings.Cut(what, " ")
		if wanted && slices.Contains([]string{"create", "update", "patch", "delete"}, verb) && what != "create events" {
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
