package loop

import (
	"regexp"
	"strings"
	"testing"
	"time"
)

// Names, programs and verbs are those that a client chose: they do not forge a line, and no terminal obeys them.
func TestNamesOfOthersStayInTheirLine(t *testing.T) {
	const evil = "a\n12:00:00.000  kubectl  delete\x1b[2J"
	var out strings.Builder
	p := Printer{W: &out}
	for _, r := range []Record{
		{Is: Event, N: 1, Kind: evil, Type: evil, Namespace: evil, Name: evil, Resource: "pods", By: Client{Name: evil}},
		{Is: Request, N: 2, Verb: evil, Resource: evil, Subresource: evil, Name: evil, By: Client{Name: evil}},
		{Is: Note, Note: evil, By: Client{Name: evil}},
	} {
		if err := p.Print(r); err != nil {
			t.Fatal(err)
		}
	}
	if text := out.String(); strings.Count(text, "\n") != 2 || strings.Contains(text, "\x1b") ||
		!strings.Contains(text, `a\n12:00:00.000  kubectl  delete\x1b[2J`) {
		t.Errorf("%q", text)
	}
}

// A request is printed after the event that was delivered before the request arrived, whenever it was answered.
func TestTheLoopIsPrinted(t *testing.T) {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	at := func(r Record, n, ms, pid int) Record {
		r.N, r.Time, r.By = n, noon.Add(time.Duration(ms)*time.Millisecond), Client{Name: "3-own", PID: pid}
		r.Namespace, r.Name = "default", "web"
		return r
	}
	modified := Record{Is: Event, Kind: "Deployment", Resource: "deployments", Type: "MODIFIED"}
	update := Record{Is: Request, Verb: "update", Resource: "webs", Subresource: "status", Code: 200, Effect: "moved"}
	lease := Record{Is: Request, Verb: "update", Resource: "leases", Code: 200}
	var out strings.Builder
	p := Printer{W: &out}
	for _, r := range []Record{at(update, 1, 0, 7), at(modified, 2, 10, 7), at(lease, 3, 11, 7), at(update, 4, 14, 7),
		at(modified, 6, 21, 7), at(update, 5, 20, 7), at(update, 7, 30, 8),
		{Is: Note, Time: noon, By: Client{Name: "lens"}, Note: "The watches go on."}} {
		if err := p.Print(r); err != nil {
			t.Fatal(err)
		}
	}
	want := `3-own  update webs/status web 200 moved
3-own  Deployment web MODIFIED delivered → 4 ms → update webs/status web 200 moved
3-own  Deployment web MODIFIED delivered
3-own  → 10 ms → update webs/status web 200 moved
3-own[8]  update webs/status web 200 moved
lens      The watches go on.
`
	if got := regexp.MustCompile(`(?m)^[0-9:.]+  `).ReplaceAllString(out.String(), ""); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
