package controller

import (
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// A wire carries the requests of an operator to the API server. It counts them, and a test can step between.
type wire struct {
	next http.RoundTripper

	mu     sync.Mutex
	sent   map[string]int
	denied []string
	meddle meddler
}

// A meddler stands between: it may act before it passes a request on, answer instead, or lose the answer.
// what is like "PATCH services site", "PUT memcacheds/status site" or "WATCH services ".
type meddler func(what string, pass func() (*http.Response, error)) (*http.Response, error)

// describe says what a request asks for; a watch, a list and a question about kinds have no name.
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
	meddle := w.meddle
	w.mu.Unlock()
	pass := func() (*http.Response, error) {
		response, err := w.next.RoundTrip(r)
		w.mu.Lock()
		defer w.mu.Unlock()
		if err == nil && response.StatusCode == http.StatusForbidden {
			w.denied = append(w.denied, r.Method+" "+r.URL.Path)
		}
		if strings.HasPrefix(what, "WATCH ") && (err != nil || response.StatusCode != http.StatusOK) {
			w.sent[what]-- // an API server that has just learned of a kind asks to come again
		}
		return response, err
	}
	if meddle != nil {
		return meddle(what, pass)
	}
	return pass()
}

// writes is how many requests asked for a change, events apart, optionally only those that begin with text.
func (w *wire) writes(text ...string) (n int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for what, count := range maps.All(w.sent) {
		wanted := len(text) == 0 || strings.HasPrefix(what, text[0])
		if verb, _, _ := strings.Cut(what, " "); wanted && !slices.Contains([]string{"GET", "LIST", "WATCH"}, verb) && what != "POST events " {
			n += int64(count)
		}
	}
	return n
}

// requests are how many of each kind were sent.
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

func (w *wire) between(m meddler) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.meddle = m
}

// answer is what an API server says that refuses.
func answer(code int, reason string) (*http.Response, error) {
	body := `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"injected","reason":"` + reason + `","code":` + strconv.Itoa(code) + `}`
	return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)),
		ContentLength: int64(len(body)), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}, nil
}
