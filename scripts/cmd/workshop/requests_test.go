package main

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"example.com/operator-workshop/scripts/examine/cluster"
	"example.com/operator-workshop/scripts/examine/loop"
)

// recorded are records as the lens writes them.
var recorded = []loop.Record{
	{By: loop.Client{Name: "2-queue", PID: 7}, Verb: "watch", Resource: "mywebs", Code: 200, Open: true},
	{By: loop.Client{Name: "2-queue", PID: 7}, Verb: "watch", Resource: "mywebs", Code: 200},
	{By: loop.Client{Name: "2-queue", PID: 7}, Verb: "get", Resource: "configmaps", Namespace: "default", Name: "myweb",
		Code: 404},
	{By: loop.Client{Name: "8-lease"}, Verb: "update", Resource: "leases", Name: "a", Code: 200, Effect: "moved"},
	{By: loop.Client{Name: "kubectl", User: "alice"}, Verb: "patch", Resource: "mywebs", Subresource: "scale",
		Namespace: "default", Name: "myweb", Code: 200, Effect: "moved"},
	{By: loop.Client{Name: "kubectl", User: "alice"}, Verb: "get", Code: 200},
	{By: loop.Client{Name: "kubectl", User: "alice"}, Verb: "create", Group: "authentication.k8s.io",
		Resource: "selfsubjectreviews", Code: 201, Effect: "same"},
}

func TestRequestsThatAreChosen(t *testing.T) {
	queue := []string{"2-queue watch 200 mywebs ", "2-queue get 404 configmaps default/myweb"}
	for name, test := range map[string]struct {
		filter requestFilter
		want   []string
	}{
		"a watch counts once, when it begins": {requestFilter{by: []string{"2-queue"}}, queue},
		"a process":                           {requestFilter{by: []string{"7"}}, queue},
		"writes of a user": {requestFilter{by: []string{"alice"}, writes: true},
			[]string{"kubectl patch 200 mywebs/scale default/myweb"}},
		"no lease": {requestFilter{by: []string{"8-lease"}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, r := range recorded {
				if r.Is = loop.Request; r.IsBy(test.filter.by) && test.filter.matches(r) {
					got = append(got, strings.Join(columns(r)[1:], " "))
				}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
		})
	}
}

func TestALineOfRequestsFitsTheTerminal(t *testing.T) {
	var out strings.Builder
	long := strings.Repeat("ü", 60)
	printRequest(&out, []string{"08:34:51", long, "deletecollection", "200", long, long})
	line := []rune(strings.TrimRight(out.String(), "\n"))
	if len(line) != 100 || strings.Count(string(line), "…") != 4 {
		t.Errorf("%d characters: %s", len(line), string(line))
	}
}

func TestARequestStaysInItsLine(t *testing.T) {
	var out strings.Builder
	printRequest(&out, []string{"08:34:51", "\x1b[2J", "get\n", "200", "pods\r", "a\nb"})
	if want := "08:34:51 \\x1b[2J                 get\\n  200  pods\\r                 a\\nb\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

func TestRequestsWithoutACluster(t *testing.T) {
	w := workshop{root: t.TempDir(), state: t.TempDir()}
	if err := w.eachRequest(t.Context(), requestFilter{}, false, func(loop.Record) {}); !errors.Is(err,
		cluster.ErrNoCluster) {
		t.Errorf("got %v, want %v", err, cluster.ErrNoCluster)
	}
}
