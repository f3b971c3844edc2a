package exercise

import (
	"path/filepath"
	"strings"
	"testing"

	"example.com/operator-workshop/scripts/examine/loop"
	"example.com/operator-workshop/scripts/internal/testkit"
)

// TestTheLoopOfTheFailureIsKept has the records of two checks in one ledger.
func TestTheLoopOfTheFailureIsKept(t *testing.T) {
	program := loop.Client{Name: "operator"}
	event := func(n int, namespace, kind string) loop.Record {
		return loop.Record{Is: loop.Event, N: n, By: program, Kind: kind, Resource: "x", Namespace: namespace, Name: "web",
			Type: "DELETED"}
	}
	create := func(n int, namespace string) loop.Record {
		return loop.Record{Is: loop.Request, N: n, By: program, Verb: "create", Resource: "services", Namespace: namespace,
			Name: "web", Code: 201, Effect: "moved"}
	}
	read, note := create(6, "b-1"), loop.Record{Is: loop.Note, N: 3, Namespace: "a-1", Note: "an act of a"}
	read.Verb, read.Code = "get", 404
	ledger := []loop.Record{create(3, "a-1"), event(2, "a-1", "Service"), note, event(1, "b-1", "Deployment"), create(4, "b-1"),
		event(5, "b-1", "ConfigMap"), read, create(8, "b-1"), event(9, "b-1", "MyWeb")}
	path := filepath.Join(t.TempDir(), "ledger.jsonl")
	f, err := loop.Create(path, 1<<20)
	testkit.Must(t, err)
	for _, r := range ledger {
		f.Write(r)
	}
	testkit.Must(t, f.Close())
	passed := Result{ID: "a", Verdict: "passed", Namespace: "a-1", End: 5}
	failed := Result{ID: "b", Verdict: "failed", What: "expected …; but …:\n  create a", Namespace: "b-1", At: 7, End: 8}
	c, e := Course{Checks: t.TempDir()}, Exercise{ID: "04.3"}
	for name, test := range map[string]struct {
		r    Judgement
		want []string
		not  string
	}{
		"a failure": {Judgement{Own: []Result{passed, failed}}, []string{"04.3: failed", "got and sent, in b:",
			"Deployment web DELETED delivered → ", "ConfigMap web DELETED delivered\n>>> here it differed: expected …; but …\n",
			"create services web 201 moved"}, "an act of a"},
		"its end":   {Judgement{Own: []Result{passed, failed}}, []string{"get services web 404"}, "MyWeb"},
		"a success": {Judgement{Own: []Result{passed}}, []string{"04.3: passed", "Service web DELETED delivered", "an act of a"}, "ConfigMap"},
	} {
		testkit.Must(t, c.keep(t.Context(), e, path, &test.r))
		if (len(test.r.Loop) == 1) != test.r.Passed() || !test.r.Kept {
			t.Errorf("%s: the loop is %q", name, test.r.Loop)
		}
		records, j, err := c.Kept(e).Read(t.Context())
		testkit.Must(t, err)
		var out strings.Builder
		testkit.Must(t, PrintKept(&out, records, j, nil))
		for _, want := range test.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: %q is not in\n%s", name, want, &out)
			}
		}
		if strings.Contains(out.String(), test.not) {
			t.Errorf("%s: %q is in\n%s", name, test.not, &out)
		}
	}
}
