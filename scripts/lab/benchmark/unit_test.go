package benchmark

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"example.com/operator-workshop/scripts/examine/ledger"
	"example.com/operator-workshop/scripts/examine/outcome"
	"example.com/operator-workshop/scripts/examine/wire"
	"example.com/operator-workshop/scripts/lab/myweb/impl"
)

func TestCount(t *testing.T) {
	entry := func(verb, group, resource, subresource string, code int, effect ledger.Effect) ledger.Entry {
		return ledger.Entry{Request: wire.Request{Verb: verb, Group: group, Resource: resource, Subresource: subresource},
			Code: code, Served: []int{code}, Effect: effect}
	}
	got := count([]ledger.Entry{
		entry(wire.Apply, "", "configmaps", "", 201, ledger.Moved),
		entry(wire.Apply, "", "configmaps", "", 200, ledger.Same),
		entry(wire.Update, "g", "webs", "status", 409, ledger.None),
	})
	want := Count{Requests: map[string]int{"apply configmaps": 2, "update webs.g/status": 1}, NoOps: 1, Conflicts: 1}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("count (-want +got):\n%s", diff)
	}
}

func TestIsServed(t *testing.T) {
	web := func(generation, observed int64, completed bool) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"generation": generation},
			"status": map[string]any{"observedGeneration": observed, "completed": completed}}}
	}
	for _, u := range []*unstructured.Unstructured{web(1, 1, true), web(2, 1, true), web(2, 2, false), {}} {
		if isServed(u, 2) {
			t.Errorf("generation 2 is not served: %v", u.Object)
		}
	}
	if !isServed(web(2, 2, true), 2) {
		t.Error("generation 2 is served")
	}
}

func TestParallel(t *testing.T) {
	done := make([]bool, 20)
	if err := parallel(3, len(done), func(i int) error {
		done[i] = true
		return nil
	}); err != nil || slices.Contains(done, false) {
		t.Errorf("%v, done %v", err, done)
	}
	if err := parallel(3, 20, func(i int) error { return fmt.Errorf("%d", i) }); err == nil {
		t.Error("the errors are lost")
	}
	if err := parallel(3, 0, func(int) error { return fmt.Errorf("called") }); err != nil {
		t.Error("it was called for nothing")
	}
}

// TestPrintFits checks that Print fits a terminal with any result, and leaves out empty values.
func TestPrintFits(t *testing.T) {
	long := strings.Repeat("w", 20)
	measured := func(name string) Measured {
		count := Count{Phase: "creation", Objects: 10, Requests: map[string]int{
			"update mywebs.operator.k8s-summit.org/status": 123456, "apply deployments.apps": 12,
			"get /apis/operator.k8s-summit.org/v1/and/a/path/that/is/longer/than/any/that/an/operator/asks/for/in/earnest": 1}}
		return Measured{Name: name, Counts: []Count{count, {Phase: "rest", Objects: 10}},
			Memory: []Memory{{MyWebs: 10000, RSS: 123456 << 20}},
			Static: Static{BinaryBytes: 1 << 30, Written: 123456, Files: 1234, Permissions: "1234"}}
	}
	r := &Result{Notes: []string{strings.Repeat("a note of many words ", 20) + "and an end"}}
	for n := range 3 {
		r.Implementations = append(r.Implementations, measured(fmt.Sprint(long[:19], n)))
	}
	var out strings.Builder
	r.Print(&out)
	for line := range strings.Lines(out.String()) {
		line = strings.TrimRight(line, "\n")
		if n := utf8.RuneCountInString(line); strings.HasSuffix(line, " ") || n > outcome.Columns {
			t.Errorf("%d columns, or spaces at the end: %q", n, line)
		}
	}
	for _, words := range []string{"update mywebs/status", "123456"} {
		if !strings.Contains(out.String(), words) {
			t.Errorf("there is no %q in\n%s", words, &out)
		}
	}
	t.Log(out.String())
	out.Reset()
	(&Result{Implementations: []Measured{{Name: "a"}}}).Print(&out)
	if out.Len() > 0 {
		t.Errorf("nothing was measured, and yet:\n%s", &out)
	}
}

func TestOptions(t *testing.T) {
	_, err := Run(t.Context(), Options{})
	if err == nil {
		t.Error("there is nothing to measure, and that is not an error")
	}
	o := Options{Implementations: make([]impl.Implementation, 1), Parts: []string{"speed"}}
	if _, err := Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), "there are static") {
		t.Errorf("an unknown part: %v", err)
	}
}

// A cluster that does not start is a fault of the lab: nothing was measured.
func TestAFaultOfTheLabIsAnError(t *testing.T) {
	i := impl.Implementation{Name: "x", Path: os.Args[0]}
	if r, err := Run(t.Context(), Options{Root: t.TempDir(), Implementations: []impl.Implementation{i}, Parts: []string{Counts}}); err == nil {
		t.Errorf("%+v", r)
	}
}
