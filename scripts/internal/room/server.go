package room

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"html/template"
	"maps"
	"mime"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Limits of the data that a room sends: no attendee can fill the memory of the instructor's machine.
const (
	mostBytes     = 1 << 10
	mostAttendees = 300
	mostExercises = 100
)

// A Server collects reports, and shows them to an instructor who knows its key.
type Server struct {
	host, key string
	mu        sync.Mutex
	attendees map[string]*attendee
}

// An attendee has the data that were sent under a name.
type attendee struct {
	Name   string
	Passed []string
	// Now is the last report.
	Now Report
	At  time.Time
}

// NewServer returns a room for a server at host, in the form HOST:PORT.
func NewServer(host string) *Server {
	return &Server{host: host, key: rand.Text(), attendees: map[string]*attendee{}}
}

// Screen returns the path of the instructor's page. The path contains a secret.
func (s *Server) Screen() string { return "/room/" + s.key }

// Routes adds the room to a server.
func (s *Server) Routes(mux *http.ServeMux) {
	mux.HandleFunc("POST /room", s.take)
	mux.HandleFunc("GET /room/{key}", s.show)
}

// take keeps a report. A page of another site cannot send a report: because of the content type, its browser would have
// to ask first, and a name that resolves to this machine is another host.
func (s *Server) take(w http.ResponseWriter, r *http.Request) {
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if r.Host != s.host || kind != "application/json" {
		http.Error(w, "only make check sends something here", http.StatusForbidden)
		return
	}
	var report Report
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, mostBytes))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(&report)
	if err == nil {
		err = report.check()
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.attendees[report.Name]
	if a == nil {
		if len(s.attendees) == mostAttendees {
			http.Error(w, "the room is full", http.StatusInsufficientStorage)
			return
		}
		a = &attendee{Name: report.Name}
		s.attendees[report.Name] = a
	}
	a.Now, a.At = report, time.Now()
	if report.Passed && !slices.Contains(a.Passed, report.Exercise) && len(a.Passed) < mostExercises {
		a.Passed = append(a.Passed, report.Exercise)
		slices.Sort(a.Passed)
	}
	w.WriteHeader(http.StatusNoContent)
}

// A sum is the number of attendees who fail at a check, or have passed an exercise.
type sum struct {
	Name  string
	Count int
}

var screen = template.Must(template.New("").Parse(`<!doctype html><html lang="en"><meta charset="utf-8">
<meta http-equiv="refresh" content="5"><title>The room</title>
<style>:root { color-scheme: light dark; font: 20px/1.5 system-ui, sans-serif; } body { margin: 1.5rem; }
table { border-collapse: collapse; }
th, td { text-align: left; padding: .2rem 1rem .2rem 0; border-bottom: 1px solid #8886; }</style>
<h1>The room: {{len .Attendees}} take part</h1>
<h2>Passed</h2><table>{{range .Passed}}<tr><th>{{.Name}}<td>{{.Count}}{{else}}<tr><td>nothing yet{{end}}</table>
<h2>What the room fails at now</h2>
<table>{{range .Fails}}<tr><th>{{.Name}}<td>{{.Count}}{{else}}<tr><td>nothing{{end}}</table>
<h2>Attendees</h2><table><tr><th>name<th>passed<th>the last check<th>at
{{range .Attendees}}<tr><td>{{.Name}}<td>{{range .Passed}}{{.}} {{end}}
<td>{{.Now.Exercise}} {{if .Now.Passed}}passed{{else}}failed {{.Now.Check}}{{end}}<td>{{.At.Format "15:04"}}{{end}}</table>
<p>Only what attendees sent. It is in the memory of the server,
and gone when the server ends.</p></html>
`))

// show serves the instructor's page.
func (s *Server) show(w http.ResponseWriter, r *http.Request) {
	if r.Host != s.host || subtle.ConstantTimeCompare([]byte(r.PathValue("key")), []byte(s.key)) != 1 {
		http.NotFound(w, r)
		return
	}
	var page bytes.Buffer
	if err := screen.Execute(&page, s.view()); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy",
		"default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	_, _ = page.WriteTo(w)
}

type view struct {
	Attendees     []attendee
	Passed, Fails []sum
}

func (s *Server) view() (v view) {
	s.mu.Lock()
	defer s.mu.Unlock()
	passed, fails := map[string]int{}, map[string]int{}
	for _, a := range s.attendees {
		one := *a
		one.Passed = slices.Clone(a.Passed)
		v.Attendees = append(v.Attendees, one)
		for _, e := range a.Passed {
			passed[e]++
		}
		if !a.Now.Passed {
			fails[a.Now.Exercise+" "+a.Now.Check]++
		}
	}
	slices.SortFunc(v.Attendees, func(a, b attendee) int {
		return cmp.Or(cmp.Compare(len(b.Passed), len(a.Passed)), cmp.Compare(a.Name, b.Name))
	})
	for _, e := range slices.Sorted(maps.Keys(passed)) {
		v.Passed = append(v.Passed, sum{e, passed[e]})
	}
	for _, check := range slices.Sorted(maps.Keys(fails)) {
		v.Fails = append(v.Fails, sum{check, fails[check]})
	}
	slices.SortStableFunc(v.Fails, func(a, b sum) int { return b.Count - a.Count })
	return v
}
