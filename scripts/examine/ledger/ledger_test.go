package ledger

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/operator-workshop/scripts/examine/wire"
)

var noon = time.Date(2026, 1, 2, 12, 3, 4, 123e6, time.UTC)

func TestEntryAsText(t *testing.T) {
	deployment := wire.Request{Verb: wire.Apply, Group: "apps", Resource: "deployments", Namespace: "default", Name: "a"}
	watch := wire.Request{Verb: wire.Watch, Resource: "configmaps"}
	tests := map[string]Entry{
		"12:03:04.123 apply deployments.apps default/a 200 3ms moved": {Start: noon, Request: deployment, Code: 200,
			Took: 3 * time.Millisecond, Served: []int{200}, Effect: Moved},
		"12:03:04.123 watch configmaps * 200 open 4 events": {Start: noon, Request: watch, Code: 200, Open: true, Events: 4},
		`12:03:04.123 get pods default/a\n\x1b[2J 404 0s`: {Start: noon, Code: 404,
			Request: wire.Request{Verb: "get", Resource: "pods", Namespace: "default", Name: "a\n\x1b[2J"}},
		"12:03:04.123 get /apis 200 1.5ms": {
			Start: noon, Request: wire.Request{Verb: "get", Path: "/apis"}, Code: 200, Took: 1499 * time.Microsecond},
		"12:03:04.123 apply deployments.apps default/a - 1.234s same served=[200] faults=[drop]": {
			Start: noon, Request: deployment,
			Took: 1234 * time.Millisecond, Served: []int{200}, Effect: Same, Faults: []string{"drop"}},
	}
	for want, entry := range tests {
		if got := entry.String(); got != want {
			t.Errorf("\n%s\n%s", got, want)
		}
	}
}

func TestMatches(t *testing.T) {
	status := Entry{ID: 5, User: "op", Start: noon, Effect: Moved, Request: wire.Request{Verb: wire.Update, Group: "g.io",
		Resource: "webs", Subresource: "status", Namespace: "a", Name: "b"}}
	lease := Entry{ID: 6, User: "op", Start: noon, Effect: Moved, Request: wire.Request{Verb: wire.Update,
		Group: "coordination.k8s.io", Resource: "leases", Namespace: "a", Name: "l"}}
	pods := Entry{ID: 7, Request: wire.Request{Verb: wire.List, Resource: "pods"}}
	health := Entry{ID: 8, Request: wire.Request{Verb: "get", Path: "/readyz"}}
	tests := map[string]struct {
		match Match
		want  string // which of them
	}{
		"everything":                      {Match{}, "status lease pods health"},
		"a resource without subresources": {Match{Resources: []string{"webs.g.io"}}, ""},
		"its status":                      {Match{Resources: []string{"webs.g.io/status"}}, "status"},
		"the core group":                  {Match{Resources: []string{"webs/status", "pods"}}, "pods"},
		"all but housekeeping":            {Match{Except: Housekeeping}, "status pods health"},
		"changes":                         {Changes, "status"},
		"a verb":                          {Match{Verbs: []string{wire.List, "get"}}, "pods health"},
		"a user":                          {Match{Users: []string{"op"}}, "status lease"},
		"a namespace":                     {Match{Namespace: "a"}, "status lease"},
		"a name":                          {Match{Name: "b"}, "status"},
		"after a mark":                    {Match{After: 6}, "pods health"},
		"where":                           {Match{Where: func(e Entry) bool { return e.Path == "/readyz" }}, "health"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			for i, e := range []Entry{status, lease, pods, health} {
				if test.match.Matches(e) {
					got = append(got, []string{"status", "lease", "pods", "health"}[i])
				}
			}
			if strings.Join(got, " ") != test.want {
				t.Errorf("%v, want %s", got, test.want)
			}
		})
	}
}

func TestEffects(t *testing.T) {
	update := wire.Request{Verb: wire.Update, Resource: "pods"}
	tests := map[string]struct {
		request wire.Request
		answer  wire.Object
		known   string
		want    Effect
	}{
		"a newer version":              {update, wire.Object{ResourceVersion: "10"}, "9", Moved},
		"the same version":             {update, wire.Object{ResourceVersion: "9"}, "9", Same},
		"an older one: it was current": {update, wire.Object{ResourceVersion: "9"}, "10", Same},
		"nothing was known":            {update, wire.Object{ResourceVersion: "9"}, "", Moved},
		"a dry run": {
			wire.Request{Verb: wire.Update, DryRun: true}, wire.Object{ResourceVersion: "9"}, "", Same},
		"a complete delete": {wire.Request{Verb: wire.Delete}, wire.Object{Kind: "Status"}, "", Moved},
		"a review":          {wire.Request{Verb: wire.Create}, wire.Object{Kind: "SelfSubjectAccessReview"}, "", Same},
	}
	for name, test := range tests {
		if got := EffectOf(test.request, test.answer, test.known); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestWhatWasKnownBefore(t *testing.T) {
	l := New(nil)
	l.Learn(wire.Object{UID: "u", ResourceVersion: "9"})
	before := l.Learnt()
	l.Learn(wire.Object{UID: "u", ResourceVersion: "10"}) // a watch overtakes the answer
	l.Learn(wire.Object{UID: "u", ResourceVersion: "8"})  // an old list
	l.Learn(wire.Object{UID: "v"})
	if got := l.KnownAt(before, "u"); got != "9" {
		t.Errorf("known before: %q", got)
	}
	if got := l.KnownAt(l.Learnt(), "u"); got != "10" {
		t.Errorf("known now: %q", got)
	}
	if got := l.KnownAt(l.Learnt(), "v"); got != "" {
		t.Errorf("known of nothing: %q", got)
	}
}

func TestEntriesAreCopies(t *testing.T) {
	l := New(nil)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 50 {
				id := l.Begin("op", wire.Request{Verb: wire.Create, Resource: "pods"}, nil)
				l.Change(id, func(e *Entry) { e.Served = append(e.Served, 201) })
				l.End(id)
				l.Entries(Match{After: id - 1})[0].Served[0] = 500
			}
		})
	}
	group.Wait()
	created := Match{Where: func(e Entry) bool { return e.Served[0] == 201 }}
	if n := l.Count(created); n != 400 || l.Mark() != 400 {
		t.Errorf("%d of %d entries are unchanged by readers, want 400", n, l.Mark())
	}
}

func TestAwait(t *testing.T) {
	l := New(nil)
	pods := Match{Resources: []string{"pods"}}
	go func() {
		for range 2 {
			l.End(l.Begin("op", wire.Request{Resource: "pods"}, nil))
		}
	}()
	if err := l.Await(t.Context(), 2, pods); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := l.Await(ctx, 3, pods); !errors.Is(err, context.DeadlineExceeded) ||
		!strings.Contains(err.Error(), "3 requests, saw 2") {
		t.Errorf("waiting for what does not come: %v", err)
	}
}

func TestAwaitQuiet(t *testing.T) {
	l := New(nil)
	l.Begin("op", wire.Request{Verb: wire.Watch, Resource: "pods"}, nil) // goes on
	busy := l.Begin("op", wire.Request{Verb: wire.List, Resource: "pods"}, nil)
	const window = 50 * time.Millisecond
	ctx, cancel := context.WithTimeout(t.Context(), 2*window)
	defer cancel()
	if err := l.AwaitQuiet(ctx, window); err == nil {
		t.Error("quiet while a request is not answered")
	}
	if err := l.AwaitQuiet(t.Context(), window, Match{Verbs: wire.Writes}); err != nil {
		t.Errorf("reads are not meant: %v", err)
	}
	l.End(busy)
	ended := time.Now()
	if err := l.AwaitQuiet(t.Context(), window); err != nil || time.Since(ended) < window {
		t.Errorf("quiet after %v: %v", time.Since(ended), err)
	}
}

// TestDelivered asks for the newest event of a resource and namespace, of a resource, and of any.
func TestDelivered(t *testing.T) {
	l := New(nil)
	for n, event := range []struct{ resource, namespace, name string }{
		{"pods", "a", "first"}, {"services", "a", "second"}, {"pods", "b", "third"}, {"pods", "a", ofEachNamespace}} {
		watch := l.Begin("op", wire.Request{Verb: wire.Watch, Resource: event.resource}, nil)
		l.Deliver(watch, []wire.Event{{Type: "ADDED", Object: wire.Object{Namespace: event.namespace, Name: event.name}}})
		if l.Newest() != 2*n+2 {
			t.Errorf("%v is number %d", event, l.Newest())
		}
	}
	for want, key := range map[string]delivery{
		"first": {"op", "a", "pods"}, "second": {"op", "a", ""}, "third": {"op", "", ""}, "": {"op", "b", "services"}} {
		if got := l.Delivered(key.user, key.namespace, key.resource).Name; got != want {
			t.Errorf("%v: %q, want %q", key, got, want)
		}
	}
}
