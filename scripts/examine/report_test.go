package examine

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	markdown "github.com/yuin/goldmark/text"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"example.com/operator-workshop/scripts/examine/fixture"
	"example.com/operator-workshop/scripts/examine/ledger"
	"example.com/operator-workshop/scripts/examine/loop"
	"example.com/operator-workshop/scripts/examine/outcome"
	"example.com/operator-workshop/scripts/examine/redact"
	"example.com/operator-workshop/scripts/examine/wire"
)

// reportOf has a finding for each pair of a title in the experiment drift and a verdict.
func reportOf(findings map[string]Verdict) *Report {
	r := &Report{Schema: Schema, Operator: "op", Requests: map[string]Requests{"drift": {Reads: 1, Writes: 2}}}
	for title, v := range findings {
		f := Finding{outcome.Result{ID: idOf("drift", title), Experiment: "drift", Title: title, Verdict: v, What: "what was seen"}}
		r.Findings = append(r.Findings, f.explained().Result)
	}
	slices.SortFunc(r.Findings, func(a, b outcome.Result) int { return strings.Compare(a.ID, b.ID) })
	return r
}

func TestRhythm(t *testing.T) {
	for want, at := range map[string][]time.Duration{
		"get pods once":                          {0},
		"get pods 2 times at once":               {0, 10 * time.Millisecond},
		"get pods every 10s, about 2 times each": {0, 1, 10 * time.Second, 10*time.Second + 1},
		"get pods every 3s":                      {0, 3 * time.Second, 6 * time.Second},
		"get pods every 100ms":                   spaced(20, 100*time.Millisecond),
	} {
		var entries []ledger.Entry
		for _, d := range at {
			entries = append(entries, ledger.Entry{Start: time.Unix(0, 0).Add(d),
				Request: wire.Request{Verb: wire.Get, Resource: "pods"}})
		}
		if got, _ := rhythm(entries); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func spaced(n int, by time.Duration) (all []time.Duration) {
	for i := range n {
		all = append(all, time.Duration(i)*by)
	}
	return all
}

func TestABaselineAcceptsAndForgetsNothing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "baseline.yaml")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("accepted:\n- {id: drift/known, reason: on purpose}\n- {id: drift/healed, reason: once}\n" +
		"- {id: drift/gone, reason: once}\n- {id: crash/not-tried, reason: later}\n" +
		"- {id: drift/rare, reason: a race, sometimes: true}\n- {id: drift/rare-now, reason: a race, sometimes: true}\n")
	b, err := ReadBaseline(file)
	if err != nil {
		t.Fatal(err)
	}
	r := reportOf(map[string]Verdict{"known": Failed, "new": Failed, "healed": Passed, "rare": Passed, "rare now": Failed})
	r.Accept(b)
	if diff := cmp.Diff([]string{"drift/healed", "drift/gone"}, r.Gone); diff != "" {
		t.Error(diff)
	}
	cut := reportOf(map[string]Verdict{"known": Failed, "healed": Passed, "further parts": Skipped})
	if cut.Accept(b); !slices.Equal(cut.Gone, []string{"drift/healed"}) {
		t.Errorf("gone, though a part was skipped: %q", cut.Gone)
	}
	if got := r.Failed("any"); !slices.Equal(got, []string{"drift/new"}) ||
		r.Findings[1].Accepted != "on purpose" || r.Findings[2].Accepted != "" || r.Findings[4].Accepted != "a race" {
		t.Errorf("failed: %q, findings: %+v", got, r.Findings)
	}
	page, say := r.Markdown(), "accepts drift/healed, which did not fail in this run: take it off the list, or add sometimes: true."
	if !strings.Contains(page, say) {
		t.Errorf("the page does not say %q:\n%s", say, page)
	}
	for text, say := range map[string]string{
		"accepted:\n- {id: drift/known}\n":             "accepts drift/known without a reason",
		"accepted:\n- {id: none/known, reason: yes}\n": "which is not the id of a finding",
		"accepts: []\n": "unknown field",
	} {
		write(text)
		if _, err := ReadBaseline(file); err == nil || !strings.Contains(err.Error(), say) {
			t.Errorf("%q: %v, want %q", text, err, say)
		}
	}
}

func TestTwoReportsAreCompared(t *testing.T) {
	older := reportOf(map[string]Verdict{"a": Passed, "b": Failed, "c": Passed, "d": Passed, "e": Failed, "gone": Failed})
	newer := reportOf(map[string]Verdict{"a": Failed, "b": Passed, "c": Passed, "d": Late, "e": Skipped, "new": Failed})
	page, worse := Compare(older, newer)
	for _, say := range []string{"## Worse\n\n- a: passed → failed: what was seen\n- d: passed → late",
		"## Better\n\n- b: failed → passed: what was seen\n\n", "both\n\n- e: failed → skipped",
		"- only now: new: failed",
		"- only before: gone: failed", "| Drift | 1 | 1 | 2 | 2 |"} {
		if !strings.Contains(page, say) {
			t.Errorf("the page does not say %q:\n%s", say, page)
		}
	}
	if diff := cmp.Diff([]string{"drift/a"}, worse); diff != "" {
		t.Error(diff)
	}
}

func TestAReportForOtherPrograms(t *testing.T) {
	r := reportOf(map[string]Verdict{"a <b> stayed changed": Failed, "c": Failed, "good": Passed, "known": Failed, "not tried": Skipped})
	for n, f := range r.Findings {
		if f.Title == "known" { // code scanning opens no alert for it
			r.Findings[n].Accepted = "we know"
		}
	}
	dir := t.TempDir()
	if _, err := r.Write(dir); err != nil {
		t.Fatal(err)
	}
	read := func(name string) []byte {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	var suites junitSuites
	if err := xml.Unmarshal(read("examine.junit.xml"), &suites); err != nil || len(suites.Suites) != 1 ||
		suites.Suites[0].Tests != 5 || suites.Suites[0].Failures != 2 || suites.Suites[0].Skipped != 2 {
		t.Errorf("%v, %+v", err, suites)
	}
	var log struct {
		Runs []struct {
			Results []struct{ PartialFingerprints map[string]string }
		}
	}
	prints := map[string]bool{} // GitHub takes findings with the same fingerprint for one
	if err := json.Unmarshal(read("examine.sarif"), &log); err == nil {
		for _, result := range log.Runs[0].Results {
			prints[result.PartialFingerprints["primaryLocationLineHash"]] = true
		}
	}
	if delete(prints, ""); len(prints) != 2 {
		t.Errorf("fingerprints %v", prints)
	}
	reread, err := ReadReport(filepath.Join(dir, "examine.json"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r, reread); diff != "" {
		t.Error(diff)
	}
	page := string(read("examine.md"))
	if strings.Index(page, "## A choice to make") > strings.Index(page, "## All experiments") {
		t.Errorf("what failed does not come first:\n%s", page)
	}
}

// TestEachFailureHasACause explains a failure of each experiment that fits no special pattern.
func TestEachFailureHasACause(t *testing.T) {
	for _, e := range experiments {
		f := Finding{outcome.Result{Experiment: e.id, Verdict: Failed}}.explained()
		if f.Severity == "" || f.Cause == "" || f.Others == "" {
			t.Errorf("%s: severity %q, cause %q, others %q", e.id, f.Severity, f.Cause, f.Others)
		}
	}
	for _, p := range patterns {
		if p.cause == "" || p.others == "" || !slices.Contains(severities, p.severity) {
			t.Errorf("%s: %q: severity %q, cause %q, others %q", p.experiment, p.says, p.severity, p.cause, p.others)
		}
	}
}

// TestIDsHaveNoSecret has a finding whose title has a value of a Secret.
func TestIDsHaveNoSecret(t *testing.T) {
	r := reportOf(map[string]Verdict{"spec.password becomes hunter2x": Passed, "good": Passed})
	r.replace(func(text string) string { return strings.ReplaceAll(text, "hunter2", "hash:0123456789ab") })
	if r.Findings[0].ID != "drift/good" || r.Findings[1].ID != "drift/spec.password-becomes-secretx" {
		t.Errorf("%q, %q", r.Findings[0].ID, r.Findings[1].ID)
	}
}

// TestAWriteBeforeTheEvent has a write that changes nothing: before the event of the last change, after it, or without one.
func TestAWriteBeforeTheEvent(t *testing.T) {
	write := ledger.Entry{UID: "1", ResourceVersion: "7", N: 10, Effect: ledger.Same}
	event := func(n int, version string) loop.Record {
		return loop.Record{Is: loop.Event, N: n, UID: "1", ResourceVersion: version}
	}
	for name, test := range map[string]struct {
		records []loop.Record
		want    bool
	}{
		"before it":                     {[]loop.Record{event(5, "6"), event(12, "7")}, true},
		"after it":                      {[]loop.Record{event(5, "6"), event(8, "7")}, false},
		"after one of two, of a watch":  {[]loop.Record{event(8, "7"), event(12, "7")}, false},
		"it does not watch that object": {[]loop.Record{{Is: loop.Event, N: 12, UID: "2", ResourceVersion: "7"}}, false},
		"only the write itself":         {[]loop.Record{{Is: loop.Request, N: 12, UID: "1", ResourceVersion: "7"}}, false},
	} {
		if got := cameLater(test.records, write); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

// TestWhoLostAnObject has objects that are gone, and what the operator has written.
func TestWhoLostAnObject(t *testing.T) {
	write := func(verb, resource, name string) (e ledger.Entry) {
		e.Verb, e.Resource, e.Name = verb, resource, name
		return e
	}
	gone := []child{{GVR: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Name: "hello"}}
	const itself, cluster = "it deleted what exists, by what it read of an earlier time: configmaps/hello",
		"it wrote by what it read of an earlier time, and the cluster then deleted configmaps/hello"
	for name, test := range map[string]struct {
		write ledger.Entry
		want  string
	}{
		"a delete":                 {write(wire.Delete, "configmaps", "hello"), itself},
		"a delete of a collection": {write(wire.DeleteCollection, "configmaps", ""), itself},
		"a delete of another one":  {write(wire.Delete, "configmaps", "other"), cluster},
		"a delete of another kind": {write(wire.Delete, "secrets", "hello"), cluster},
		"an update":                {write(wire.Update, "configmaps", "hello"), cluster},
	} {
		if f := lostBy(gone, []ledger.Entry{test.write}); f.What != test.want {
			t.Errorf("%s: %q, want %q", name, f.What, test.want)
		}
	}
}

// TestACreateBeforeTheEvent has a create of an object that exists: before the first event of the object, after it, or
// without one.
func TestACreateBeforeTheEvent(t *testing.T) {
	create := ledger.Entry{N: 10}
	create.Resource, create.Namespace, create.Name = "services", "here", "hello"
	event := func(n int, name string) loop.Record {
		r := loop.Record{Is: loop.Event, N: n}
		r.Resource, r.Namespace, r.Name = "services", "here", name
		return r
	}
	for name, test := range map[string]struct {
		records []loop.Record
		want    bool
	}{
		"before it":              {[]loop.Record{event(5, "other"), event(12, "hello")}, true},
		"after it":               {[]loop.Record{event(8, "hello"), event(12, "hello")}, false},
		"it does not watch them": {[]loop.Record{event(12, "other")}, false},
	} {
		if got := firstLater(test.records, create); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

func TestBackoffIsNotAHotLoop(t *testing.T) {
	begin := time.Now()
	tries := func(gaps ...time.Duration) (w watched) {
		w.begin, w.end = begin, begin.Add(window)
		at := begin
		for _, p := range gaps {
			at = at.Add(p)
			w.entries = append(w.entries, ledger.Entry{Start: at, Request: wire.Request{Verb: wire.Create, Resource: "pods"}})
		}
		return w
	}
	var backoff, atOnce, often []time.Duration
	slower := append(slices.Repeat([]time.Duration{2 * time.Millisecond}, 1000), slices.Repeat([]time.Duration{5 * time.Millisecond}, 100)...)
	for d := 5 * time.Millisecond; d < 3*time.Second; d *= 2 {
		backoff = append(backoff, d, 10*time.Millisecond, 10*time.Millisecond, 10*time.Millisecond) // tries of one reconcile
	}
	for range 200 {
		atOnce = append(atOnce, 20*time.Millisecond)
	}
	for range 15 {
		often = append(often, 250*time.Millisecond)
	}
	limited := slices.Repeat([]time.Duration{0}, 10) // client-go sends 10 at once, and then 5 in a second
	for range 20 {
		limited = append(limited, 200*time.Millisecond)
	}
	for name, test := range map[string]struct {
		w    watched
		want bool
	}{
		"backoff":                              {tries(backoff...), false},
		"backoff of several keys":              {tries(severalKeys(6)...), false},
		"at once":                              {tries(atOnce...), true},
		"at once, with a limited client":       {tries(limited...), true},
		"at once, on a machine that gets busy": {tries(slower...), true},
		"often":                                {tries(often...), true},
	} {
		if got := test.w.hot(); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

// severalKeys are the gaps between tries for one object that several keys of a work queue demand, each with backoff.
func severalKeys(n int) (gaps []time.Duration) {
	var all []time.Duration
	for key := range n {
		at := time.Duration(key) * 300 * time.Millisecond
		for d := 5 * time.Millisecond; at+d < window; d *= 2 {
			at += d
			all = append(all, at)
		}
	}
	slices.Sort(all)
	for n, at := range all {
		gaps = append(gaps, at-all[max(0, n-1)])
	}
	return gaps
}

func TestWhatIsBeingRefused(t *testing.T) {
	write := func(verb, name string, code int) ledger.Entry {
		return ledger.Entry{Code: code, Message: "no", Request: wire.Request{Verb: verb, Resource: "pods", Name: name}}
	}
	for name, test := range map[string]struct {
		writes []ledger.Entry
		say    string
	}{
		"all": {[]ledger.Entry{write("create", "a", 422), write("create", "a", 422)},
			"2 of 2 requests create pods a were refused with 422: no"},
		"in the end it was accepted": {[]ledger.Entry{write("create", "a", 422), write("create", "a", 201)}, ""},
		"another object was accepted": {[]ledger.Entry{write("create", "a", 422), write("create", "b", 201)},
			"1 of 1 requests create pods a were refused with 422: no"},
		"a conflict, and what is gone": {[]ledger.Entry{write("update", "a", 409), write("delete", "b", 404)}, ""},
		"the kind does not exist": {[]ledger.Entry{write("create", "a", 404)},
			"1 of 1 requests create pods a were refused with 404: no"},
	} {
		if err := beingRefused(test.writes); (err == nil) != (test.say == "") || err != nil && err.Error() != test.say {
			t.Errorf("%s: %v, want %q", name, err, test.say)
		}
	}
}

func TestLinesOfErrors(t *testing.T) {
	for line, want := range map[string]bool{
		`2026-11-25T10:00:00Z	ERROR	Reconciler error	{"namespace": "examine-1"}`: true,
		`{"level":"error","ts":1.5,"msg":"Reconciler error"}`:                    true,
		`time=2026-11-25 level=error msg="x"`:                                    true,
		`E1125 10:00:00.000000       1 controller.go:1] x`:                       true,
		`{"level":"info","msg":"no error so far"}`:                               false,
		`I1125 10:00:00.000000       1 controller.go:1] x`:                       false,
	} {
		if got := errorLine.MatchString(line); got != want {
			t.Errorf("%s: %v, want %v", line, got, want)
		}
	}
}

// TestTheSchemaHasTheFieldsOfAReport compares the schema for other programs with the types.
func TestTheSchemaHasTheFieldsOfAReport(t *testing.T) {
	data, err := os.ReadFile("report.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	type object struct {
		Const      string                     `json:"const"`
		Enum       []string                   `json:"enum"`
		Properties map[string]json.RawMessage `json:"properties"`
		Items      *struct {
			Properties map[string]json.RawMessage `json:"properties"`
		} `json:"items"`
	}
	read := func(data []byte) (o object) {
		if err := json.Unmarshal(data, &o); err != nil {
			t.Fatal(err)
		}
		return o
	}
	report := read(data)
	findings := read(report.Properties["findings"]).Items.Properties
	for name, test := range map[string]struct {
		of         any
		properties map[string]json.RawMessage
	}{"report": {Report{}, report.Properties}, "finding": {outcome.Result{}, findings}} {
		if diff := cmp.Diff(fieldsOf(test.of), slices.Sorted(maps.Keys(test.properties))); diff != "" {
			t.Errorf("%s: (-type +schema):\n%s", name, diff)
		}
	}
	if got := read(report.Properties["schema"]).Const; got != Schema {
		t.Errorf("the schema is of %q, want %q", got, Schema)
	}
	var want []string
	for _, s := range severities {
		want = append(want, string(s))
	}
	if diff := cmp.Diff(want, read(findings["severity"]).Enum); diff != "" {
		t.Error(diff)
	}
}

// fieldsOf are the names of a struct's fields in JSON.
func fieldsOf(value any) (names []string) {
	for _, f := range reflect.VisibleFields(reflect.TypeOf(value)) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func TestForbiddenRequestsAreNamed(t *testing.T) {
	l := ledger.New(time.Now)
	o := &operator{fixture: &fixture.Fixture{Ledger: l}, user: &fixture.User{Name: "examined"}}
	if got := o.forbidden(1); got != "" {
		t.Errorf("nothing was forbidden: %q", got)
	}
	for _, code := range []int{http.StatusForbidden, http.StatusForbidden, http.StatusOK} {
		for _, resource := range []string{"services", "configmaps"} {
			id := l.Begin("examined", wire.Request{Verb: wire.List, Resource: resource}, nil)
			l.Change(id, func(e *ledger.Entry) { e.Code = code })
			l.End(id)
		}
	}
	if got := o.forbidden(1); got != ", and ROLE= does not allow list configmaps, list services" {
		t.Errorf("the forbidden requests: %q", got)
	}
}

func TestTheErrorIsShownWithoutTheHelp(t *testing.T) {
	help := "USAGE:\n   operator [options]\n" + strings.Repeat("   --flag value\n", 20)
	for name, output := range map[string]string{
		"before the help": "flag provided but not defined: -x\n" + help,
		"behind the help": "INFO Starting\nNAME:\n   operator\n" + help + "flag provided but not defined: -x\n",
		"long before":     "ERROR flag provided but not defined: -x\n" + strings.Repeat("INFO Stopping\n", 20),
	} {
		if got := usefulLines(output); !strings.Contains(got, "flag provided but not defined: -x") {
			t.Errorf("%s: %q", name, got)
		}
	}
	const log = "2026-11-28T12:00:00Z\tERROR\tReconciler error\t{\"controller\": \"x\", \"reconcileID\": \"1\", \"error\": \"no\"}\n" +
		"sigs.k8s.io/controller-runtime/pkg/x.Start\n\t/go/controller.go:312\n"
	if got := usefulLines(log); got != ". Its last lines:\n  2026-11-28T12:00:00Z\tERROR\tReconciler error\terror: no" {
		t.Errorf("a log with a trace: %q", got)
	}
	if got := usefulLines("panic: no\n\t/work/main.go:12\n"); !strings.Contains(got, "main.go:12") {
		t.Errorf("a panic: %q", got)
	}
}

// A report is printed, too: a terminal obeys nothing of an operator's output or of a name in the cluster.
func TestATerminalObeysNoReport(t *testing.T) {
	r := run{secrets: redact.New()}
	r.report = &Report{Notes: []string{"\x1b[2J"}, Findings: []outcome.Result{{Title: "\x1b[2J", What: "a\n\x1b[2J",
		Evidence: []string{"\x1b]0;title\a\tb\n"}}}}
	r.report.replace(r.shownText)
	if f := r.report.Findings[0]; r.report.Notes[0] != `\x1b[2J` || f.Title != `\x1b[2J` || f.What != "a\n\\x1b[2J" ||
		f.Evidence[0] != "\\x1b]0;title\\a\tb\n" {
		t.Errorf("%+v", r.report)
	}
	file := filepath.Join(t.TempDir(), "examine.json")
	foreign, err := json.Marshal(Report{Schema: Schema, Operator: "\x1b[2J", Findings: []outcome.Result{{What: "\x1b[2J"}}})
	if err != nil || os.WriteFile(file, foreign, 0o600) != nil {
		t.Fatal(err)
	}
	read, err := ReadReport(file)
	if err != nil || read.Operator+read.Findings[0].What != `\x1b[2J\x1b[2J` {
		t.Errorf("%+v, %v", read, err)
	}
}

// TestAPageHasTextsAsTheyAre: no text of an operator becomes a link, HTML, emphasis or the end of a block.
func TestAPageHasTextsAsTheyAre(t *testing.T) {
	const hostile = "<script>alert('x')</script> | a `tick`, *stars* & [link](x) \\|\n```\n[link](y)"
	r := reportOf(map[string]Verdict{hostile: Failed, "good": Passed, hostile + "2": Skipped})
	r.Operator, r.Notes, r.Children, r.Creation = hostile, []string{hostile}, []string{hostile}, []string{hostile}
	for n := range r.Findings {
		r.Findings[n].What, r.Findings[n].Evidence = hostile, []string{hostile}
	}
	r.Sections = []Section{{"drift", "Drift | [link](z)", "why"}}
	for name, page := range map[string]string{"a report": r.Markdown(), "two": Table(r, r), "none": (&Report{}).Markdown()} {
		tree := goldmark.New(goldmark.WithExtensions(extension.Table)).Parser().Parse(markdown.NewReader([]byte(page)))
		err := ast.Walk(tree, func(n ast.Node, _ bool) (ast.WalkStatus, error) {
			switch n := n.(type) {
			case *ast.HTMLBlock:
				if html := string(n.Lines().Value([]byte(page))); !strings.Contains(html, "details>") {
					t.Errorf("%s: HTML: %s", name, html)
				}
			case *ast.RawHTML, *ast.Image, *ast.FencedCodeBlock:
				t.Errorf("%s: %s of an operator", name, n.Kind())
			case *ast.Link:
				if link := string(n.Destination); !strings.HasPrefix(link, "#") {
					t.Errorf("%s: the link %s", name, link)
				}
			case *ast.Emphasis:
				if n.Level != 2 {
					t.Errorf("%s: emphasis", name)
				}
			}
			return ast.WalkContinue, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestWhatTheSampleWasGivenStays has two experiments: in the first, the operator deletes a prerequisite of the sample.
func TestWhatTheSampleWasGivenStays(t *testing.T) {
	deleted := map[string]bool{"configmaps/b": true, "configmaps/a": true}
	r := run{secrets: redact.New(), deleted: deleted, report: &Report{}, current: experiments[0],
		narrator: &narrator{pass: t.Logf}, target: &target{needs: []*unstructured.Unstructured{{}}}}
	r.judgeGiven()
	r.judgeGiven()
	first, second := r.report.Findings[0], r.report.Findings[1]
	if want := "it deleted what was there before the sample: configmaps/a, configmaps/b"; first.What != want ||
		first.Verdict != Failed || first.Severity != Stops || second.Verdict != Passed {
		t.Errorf("%+v", r.report.Findings)
	}
	r.target.needs = nil
	if r.judgeGiven(); len(r.report.Findings) > 2 {
		t.Errorf("there are no prerequisites: %+v", r.report.Findings[2])
	}
}

func TestTheLeastNumberOfWrites(t *testing.T) {
	write := func(resource, subresource, name string, effect ledger.Effect) ledger.Entry {
		return ledger.Entry{Effect: effect, Request: wire.Request{Verb: wire.Apply, Resource: resource,
			Subresource: subresource, Namespace: "a", Name: name}}
	}
	writes := []ledger.Entry{write("services", "", "x", ledger.Moved), write("services", "", "y", ledger.Moved),
		write("services", "", "x", ledger.Moved), write("secrets", "", "x", ledger.Same)}
	if got := leastWrites(writes); got != 2 {
		t.Errorf("without a status: %d", got)
	}
	if got := leastWrites(append(writes, write("services", "status", "x", ledger.Moved))); got != 3 {
		t.Errorf("with a status: %d", got)
	}
}

// TestOneFindingForVariants joins the findings about three ways of a deletion.
func TestOneFindingForVariants(t *testing.T) {
	good := passed("good")
	bad := failed("2 creates for a sample that has a deletion timestamp; they were deleted").with("x")
	for name, test := range map[string]struct {
		all  []Finding
		want string
	}{
		"all pass":        {[]Finding{good, good}, "passed: good\ngood"},
		"the first fails": {[]Finding{bad, good}, "failed: " + bad.What},
		"the last fail":   {[]Finding{good, bad, bad}, "failed: " + bad.What + "\n" + bad.What},
	} {
		var f Finding
		for _, other := range test.all {
			f = f.and(other)
		}
		if got := string(f.Verdict) + ": " + f.What; got != test.want || f.Verdict == Failed && len(f.Evidence) == 0 {
			t.Errorf("%s: %q", name, got)
		}
	}
	bad.Experiment = "deletion"
	if got := bad.explained().Severity; got != Costs {
		t.Errorf("children that the garbage collector deletes: %s", got)
	}
	bad.What += "; services/a stays without its sample"
	if got := bad.explained().Severity; got != Stops {
		t.Errorf("children that stay: %s", got)
	}
}

// TestWhatWasNotTriedStandsFirst has two reports of one operator, of which the older had less time.
func TestWhatWasNotTriedStandsFirst(t *testing.T) {
	older := reportOf(map[string]Verdict{"a": Passed, "slow": Skipped, notTried + "faults": Skipped, "old": Passed, "parts": Passed})
	for n := range older.Findings {
		switch f := &older.Findings[n]; {
		case f.Verdict == Skipped:
			f.Left, f.Of = 3, 13
		case f.Title == "parts":
			f.Of = 10 // the newer one had none of them
		}
	}
	lines := strings.Split(older.Markdown(), "\n")
	first := strings.Join(lines[:min(10, len(lines))], "\n")
	older.Findings = append(older.Findings, outcome.Result{Verdict: Failed, Cause: "a"}, outcome.Result{Verdict: Failed, Cause: "a"})
	if page := older.Markdown(); !strings.Contains(page, "2 failed for 1 cause,") {
		t.Errorf("three findings of one cause:\n%s", page)
	}
	older.Findings = older.Findings[:len(older.Findings)-2]
	if want := "Not tried: 3 of 13 faults; slow; the experiments creation, "; !strings.Contains(first, want) {
		t.Errorf("the first lines lack %q:\n%s", want, first)
	}
	page, _ := Compare(older, reportOf(map[string]Verdict{"a": Failed, "slow": Failed, "old": Passed, "new": Failed, "parts": Failed}))
	if !strings.Contains(page, "- a: passed → failed") || strings.Contains(page, "parts") || strings.Contains(page, "slow") || strings.Contains(page, "new") ||
		strings.Contains(page, "faults") || strings.Contains(page, "| Drift") {
		t.Errorf("the comparison has what one side alone had time for:\n%s", page)
	}
}

// TestThePlaceOfAFinding has a repository with a sample, a CRD and a file with a blank in its name.
func TestThePlaceOfAFinding(t *testing.T) {
	crd, err := os.ReadFile("testoperator/config/crd.yaml")
	manifests, manifestsErr := os.ReadFile(manifest)
	if err := errors.Join(err, manifestsErr); err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	t.Chdir(root)
	sample := "apiVersion: v1\nkind: ConfigMap\n---\napiVersion: test.example.com/v1\nkind: Greeting\nspec:\n  text: a\n" +
		"  tls: {on: true}\n"
	if err := errors.Join(os.Mkdir(".git", 0o700), os.Mkdir("a b", 0o700),
		os.WriteFile("a b/sample.yaml", []byte(sample), 0o600), os.WriteFile("crd.yaml", crd, 0o600)); err != nil {
		t.Fatal(err)
	}
	read := &target{Subject: Subject{CRD: ".", Sample: "a b/sample.yaml"}, sample: &unstructured.Unstructured{}}
	read.sample.SetKind("Greeting")
	read.gvr.Version = "v1"
	for field, want := range map[string]string{"spec.text": "a b/sample.yaml:7", "spec.tls.on": "a b/sample.yaml:8",
		"spec.nodePort": "crd.yaml:25", "none": ":0"} {
		file, line := read.placeOf(strings.Split(field, "."))
		if got := fmt.Sprintf("%s:%d", file, line); got != want {
			t.Errorf("%s: %s, want %s", field, got, want)
		}
	}
	if err := os.WriteFile("a b/manifest.yaml", manifests, 0o600); err != nil {
		t.Fatal(err)
	}
	read.Program, read.Manifest = "bin/testoperator", "a b"
	if err := read.readManifest(); err != nil {
		t.Fatal(err)
	}
	read.Role = []string{"role.yaml"}
	for p, want := range map[permission]string{{"list", "apps", "deployments"}: "a b/manifest.yaml:34",
		{"get", "", "pods"}: "a b/manifest.yaml:22", {"delete", "", "pods"}: "role.yaml:0"} {
		file, line := read.placeOfRule(p)
		if got := fmt.Sprintf("%s:%d", file, line); got != want {
			t.Errorf("%s: %s, want %s", p, got, want)
		}
	}
	for _, file := range []string{"a b/sample.yaml", filepath.Join(root, "a b/sample.yaml")} {
		if got := inRepository(file); got != "a%20b/sample.yaml" {
			t.Errorf("%s: %q", file, got)
		}
	}
	r := &Report{Findings: []outcome.Result{{Verdict: Failed, Experiment: "spec", File: "a b/sample.yaml", Line: 7}}}
	sarif, err := r.sarif()
	if err != nil || !strings.Contains(string(sarif), `"uri": "a%20b/sample.yaml"`) ||
		!strings.Contains(string(sarif), `"startLine": 7`) {
		t.Errorf("%v, %s", err, sarif)
	}
}

func TestAFindingFitsTheScreen(t *testing.T) {
	var lines []string
	r := run{secrets: redact.New(), report: &Report{}, current: experiments[0],
		narrator: &narrator{pass: func(format string, args ...any) {
			lines = append(lines, strings.Split(fmt.Sprintf(format, args...), "\n")...)
		}}}
	r.add("a title", failed("%s", strings.Repeat("a long text ", 20)))
	for _, line := range lines {
		if len(line) > 100 {
			t.Errorf("%d columns: %s", len(line), line)
		}
	}
	if len(lines) < 3 || !strings.HasPrefix(lines[0], "  failed  a title: a long text") {
		t.Errorf("%q", lines)
	}
}
