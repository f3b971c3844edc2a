package room

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"html/template"
	"maps"
	"mime"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"
)

// Limits of the data that a room sends: no attendee can fill the memory of the instructor's machine.
const (
	mostBytes     = 1 << 10
	mostAttendees = 300
	// mostNames is how many names come from one address: one machine does not fill the room. Attendees behind a router
	// may share an address.
	mostNames = 30
)

// A Server collects reports, and shows them to an instructor who knows its key.
type Server struct {
	host, key string
	exercises []string // of the course
	mu        sync.Mutex
	attendees map[string]*attendee
	names     map[netip.Prefix]int // how many names have come from an address
}

// An attendee has the data that were sent under a name.
type attendee struct {
	token  string
	from   netip.Prefix
	Name   string
	Passed []string
	// Now is the last report. Since is the time of the first report with its verdict on its exercise.
	Now   Progress
	Since time.Time
	// Goto is the command with which the attendee leaves the exercise.
	Goto string
}

// Minutes is the age of the last verdict.
func (a attendee) Minutes() int { return int(time.Since(a.Since).Minutes()) }

// NewServer returns a room for a server at host, in the form HOST:PORT, and for the exercises of a course.
func NewServer(host string, exercises []string) *Server {
	return &Server{host: host, key: rand.Text(), exercises: exercises, attendees: map[string]*attendee{},
		names: map[netip.Prefix]int{}}
}

// Screen returns the path of the instructor's page. The path contains a secret.
func (s *Server) Screen() string { return "/room/" + s.key }

// Routes adds the room to a server.
func (s *Server) Routes(mux *http.ServeMux) {
	mux.HandleFunc("POST /room", s.take)
	mux.HandleFunc("GET /room/{key}", s.show)
	mux.HandleFunc("POST /room/{key}", s.remove)
}

// take keeps a report. A page of another site cannot send a report: because of the content type, its browser would have
// to ask first, and a name that resolves to this machine is another host.
func (s *Server) take(w http.ResponseWriter, r *http.Request) {
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if r.Host != s.host || kind != "application/json" {
		http.Error(w, "only make check sends something here", http.StatusForbidden)
		return
	}
	var report Progress
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, mostBytes))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(&report)
	if err == nil {
		err = report.check()
	}
	if err == nil && !slices.Contains(s.exercises, report.Exercise) {
		err = fmt.Errorf("%q is not an exercise of this course", report.Exercise)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if code, why := s.keep(report, networkOf(r)); why != "" {
		http.Error(w, why, code)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// networkOf returns the address of a client. Under IPv6 a machine has a whole network of addresses.
func networkOf(r *http.Request) netip.Prefix {
	from, _ := netip.ParseAddrPort(r.RemoteAddr) // net/http always has an address and a port
	address := from.Addr().Unmap()
	network, _ := address.Prefix(min(64, address.BitLen()))
	return network
}

// keep keeps a report, or returns the reason why not.
func (s *Server) keep(report Progress, from netip.Prefix) (code int, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.attendees[report.Name]
	switch {
	case a == nil && len(s.attendees) == mostAttendees:
		return http.StatusInsufficientStorage, "the room is full"
	case a == nil && s.names[from] == mostNames:
		return http.StatusTooManyRequests, "too many names from this address"
	case a == nil:
		a = &attendee{token: report.Token, from: from, Name: report.Name}
		s.attendees[report.Name] = a
		s.names[from]++
	case subtle.ConstantTimeCompare([]byte(a.token), []byte(report.Token)) != 1:
		return http.StatusForbidden, "another machine uses this name: choose another, or ask your instructor"
	}
	report.Token = ""
	if a.Since.IsZero() || a.Now.Exercise != report.Exercise || a.Now.Passed != report.Passed {
		a.Since = time.Now()
	}
	a.Now, a.Goto = report, s.leave(report.Exercise)
	if report.Passed && !slices.Contains(a.Passed, report.Exercise) {
		a.Passed = append(a.Passed, report.Exercise)
		slices.Sort(a.Passed)
	}
	return 0, ""
}

// leave returns the command with which an attendee begins the next exercise of a chapter, or sees the solution of the
// last one.
func (s *Server) leave(exercise string) string {
	chapter, _, _ := strings.Cut(exercise, ".")
	next := slices.Index(s.exercises, exercise) + 1
	if next < len(s.exercises) && strings.HasPrefix(s.exercises[next], chapter+".") {
		return "make goto EX=" + s.exercises[next]
	}
	return "make solution"
}

// remove removes the row of a name, which is free again.
func (s *Server) remove(w http.ResponseWriter, r *http.Request) {
	if !s.isInstructor(r) {
		http.NotFound(w, r)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, mostBytes)
	s.mu.Lock()
	if a := s.attendees[r.PostFormValue("name")]; a != nil {
		delete(s.attendees, a.Name)
		s.names[a.from]--
	}
	s.mu.Unlock()
	http.Redirect(w, r, s.Screen(), http.StatusSeeOther)
}

// isInstructor reports whether a request has the key.
func (s *Server) isInstructor(r *http.Request) bool {
	return r.Host == s.host && subtle.ConstantTimeCompare([]byte(r.PathValue("key")), []byte(s.key)) == 1
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
<h2>Attendees: first those who fail longest</h2>
<table><tr><th>name<th>the last check<th>for<th>when late<th>passed
{{range .Attendees}}<tr><td>{{.Name}}<td>{{.Now.Exercise}} {{if .Now.Passed}}passed{{else}}failed {{.Now.Check}}{{end}}
<td>{{.Minutes}} min<td>{{if not .Now.Passed}}<code>{{.Goto}}</code>{{end}}<td>{{range .Passed}}{{.}} {{end}}
<td><form method="post"><button name="name" value="{{.Name}}">remove</button></form>{{end}}</table>
<p>Only what attendees sent. It is in the memory of the server,
and gone when the server ends.</p></html>
`))

// show serves the instructor's page.
func (s *Server) show(w http.ResponseWriter, r *http.Request) {
	if !s.isInstructor(r) {
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
		"default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
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
		if a.Now.Passed != b.Now.Passed {
			return map[bool]int{false: -1, true: 1}[a.Now.Passed]
		}
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Name, b.Name))
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
