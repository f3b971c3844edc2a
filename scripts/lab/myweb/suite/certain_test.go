package suite

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"example.com/operator-workshop/scripts/examine/fixture"
	"example.com/operator-workshop/scripts/examine/frame"
	"example.com/operator-workshop/scripts/examine/ledger"
	"example.com/operator-workshop/scripts/examine/outcome"
	"example.com/operator-workshop/scripts/examine/supervisor"
	"example.com/operator-workshop/scripts/examine/wire"
)

// program starts a shell script as the operator of a check.
func program(t *testing.T, text string) *fixture.Process {
	t.Helper()
	path := filepath.Join(t.TempDir(), "operator")
	must(t, os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o755))
	p := &fixture.Process{}
	var err error
	if p.Child, err = supervisor.Start(supervisor.Command{Path: path, Env: os.Environ(), Output: p}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Kill() })
	return p
}

// TestWhatIsCertain deletes a ConfigMap, and nothing happens. Whether it is certain that nothing will happen depends on
// what the operator does and on what it got, never on the time alone.
func TestWhatIsCertain(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("this system does not show the states of threads")
	}
	kube, err := kubernetes.NewForConfig(&rest.Config{Host: "127.0.0.1:1"})
	must(t, err)
	const waits, works = "exec sleep 300", "while :; do :; done"
	gone := wire.Event{Type: "DELETED", Object: wire.Object{Kind: "ConfigMap", Namespace: "check", Name: "web"}}
	type requests func(*ledger.Ledger)
	send := func(user string, r wire.Request, code int, ends bool) requests {
		return func(l *ledger.Ledger) {
			id := l.Begin(user, r, nil)
			l.Change(id, func(e *ledger.Entry) { e.Code, e.Served, e.Events = code, []int{code}, 1 })
			if ends {
				l.End(id)
			}
		}
	}
	both := func(all ...requests) requests {
		return func(l *ledger.Ledger) {
			for _, f := range all {
				f(l)
			}
		}
	}
	create := wire.Request{Verb: wire.Create, Resource: ConfigMaps, Namespace: "check", Name: "web"}
	service := wire.Request{Verb: wire.Create, Resource: Services, Namespace: "check", Name: "web"}
	other := wire.Request{Verb: wire.Create, Resource: ConfigMaps, Namespace: "other", Name: "web"}
	event := wire.Request{Verb: wire.Create, Group: "events.k8s.io", Resource: "events", Namespace: "check"}
	list := wire.Request{Verb: wire.List, Resource: Services}
	watch := wire.Request{Verb: wire.Watch, Resource: Services}
	for name, test := range map[string]struct {
		program string
		event   bool
		then    requests
		certain bool
	}{
		"it got the event and waits":              {waits, true, nil, true},
		"it sent a request":                       {waits, true, send("lab", create, 201, true), true},
		"it needs a processor":                    {works, true, nil, false},
		"the event is on its way":                 {waits, false, nil, false},
		"its request is not answered":             {waits, true, send("lab", create, 0, false), false},
		"its request was refused":                 {waits, true, send("lab", create, 500, true), false},
		"the answer to its request was lost":      {waits, true, send("lab", create, 0, true), false},
		"its request was refused, then not":       {waits, true, both(send("lab", create, 500, true), send("lab", create, 201, true)), true},
		"one of its requests was refused":         {waits, true, both(send("lab", create, 500, true), send("lab", service, 201, true)), false},
		"its list was refused":                    {waits, true, both(send("lab", list, 500, true), send("lab", create, 201, true)), false},
		"it has a request in another namespace":   {waits, true, send("lab", other, 0, false), false},
		"it was refused in another namespace":     {waits, true, send("lab", other, 500, true), true},
		"its event is not answered":               {waits, true, send("lab", event, 0, false), false},
		"its event was refused":                   {waits, true, send("lab", event, 500, true), true},
		"its watch has ended":                     {waits, true, send("lab", watch, 200, true), false},
		"its watch has ended, the next is open":   {waits, true, both(send("lab", watch, 200, true), send("lab", watch, 200, false)), true},
		"another replica sent a request":          {waits, true, send("lab-b", create, 201, true), false},
		"the first events of a watch are to come": {waits, true, func(l *ledger.Ledger) { l.Begin("lab", watch, nil) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := program(t, test.program)
			most := 2 * certain
			if test.certain {
				most = time.Minute // the machine may be busy
			}
			o := outcomeOf(t, 2*most, func(c *T) {
				c.Fixture.Kube = kube // it does not answer: the check sees no rollout
				l := c.Fixture.Ledger
				c.Operator.Began(p)
				c.Operator.AssumeNone()
				c.Operator.reports, c.Operator.patience = false, time.Minute
				watch := l.Begin("lab", wire.Request{Verb: wire.Watch, Resource: ConfigMaps}, nil)
				l.Change(watch, func(e *ledger.Entry) { e.Events = 1 })
				l.Deliver(watch, []wire.Event{gone}) // before the act
				_, err := c.asUser("a user deleted ConfigMap web", wire.Delete, ConfigMaps, "web",
					func() (*unstructured.Unstructured, error) { return nil, nil })
				c.Must(err, "delete")
				if test.event {
					l.Deliver(watch, []wire.Event{gone})
				}
				if test.then != nil {
					test.then(l)
				}
				begin := time.Now()
				if c.Handled(most); (time.Since(begin) < most) != test.certain {
					t.Errorf("certain after %v", time.Since(begin))
				}
				c.Reaction("it is back", 0, func() error { return errors.New("it is not") })
			})
			gaveUp := strings.Contains(o.What, "it is back; but the operator sends nothing any more, and it is not")
			if o.Verdict != outcome.Failed || gaveUp != test.certain {
				t.Errorf("%s: %s", o.Verdict, o.What)
			}
		})
	}
}

// TestWhatIsBeingDeleted lists the objects of a namespace, of which one may have a deletion timestamp.
func TestWhatIsBeingDeleted(t *testing.T) {
	for name, test := range map[string]struct {
		metadata string
		deletes  bool
	}{
		"an object stays":                   {`{"name": "web"}`, false},
		"an object waits for its finalizer": {`{"name": "web", "deletionTimestamp": "2026-01-01T00:00:00Z"}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				items := ""
				if strings.HasSuffix(r.URL.Path, "/namespaces/check/configmaps") {
					items = `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": ` + test.metadata + `}`
				}
				fmt.Fprintf(w, `{"apiVersion": "v1", "kind": "List", "metadata": {}, "items": [%s]}`, items)
			}))
			defer server.Close()
			client, err := dynamic.NewForConfig(&rest.Config{Host: server.URL})
			must(t, err)
			c := &T{Trial: &frame.Trial{Fixture: &fixture.Fixture{Dynamic: client}, Namespace: "check", Ctx: t.Context()}}
			if c.deletes() != test.deletes {
				t.Errorf("an object is being deleted: %t", !test.deletes)
			}
		})
	}
}

// TestWhatIsObserved has an operator that waits, and a ConfigMap whose newest version it may not have.
func TestWhatIsObserved(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("this system does not show the states of threads")
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"apiVersion": "v1", "kind": "List", "metadata": {}, "items": [
			{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web", "resourceVersion": "10"}}]}`)
	}))
	defer server.Close()
	client, err := dynamic.NewForConfig(&rest.Config{Host: server.URL})
	must(t, err)
	for version, sure := range map[string]bool{"9": false, "10": true} {
		p := program(t, "exec sleep 300")
		o := outcomeOf(t, 2*time.Minute, func(c *T) {
			l := c.Fixture.Ledger
			c.Fixture.Dynamic = client
			c.Operator.Began(p)
			c.ActOn(ConfigMaps, "a user created ConfigMap web")
			watch := l.Begin("lab", wire.Request{Verb: wire.Watch, Resource: ConfigMaps}, nil)
			l.Change(watch, func(e *ledger.Entry) { e.Events = 1 })
			l.Deliver(watch, []wire.Event{{Type: "ADDED", Object: wire.Object{Kind: "ConfigMap", Namespace: "check",
				Name: "web", ResourceVersion: version}}})
			most := time.Minute // the machine may be busy
			if !sure {
				most = 5 * observed
			}
			if c.Observed(ConfigMaps, most) != sure {
				t.Errorf("version 10 is observed after the event of version %s: %t", version, !sure)
			}
		})
		if o.Verdict != outcome.Passed {
			t.Errorf("%s: %s", o.Verdict, o.What)
		}
	}
}

// TestTheTimeOfAProgramThatWorks has a wait whose event comes late: while the operator worked, that was in time.
func TestTheTimeOfAProgramThatWorks(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("this system does not show the states of threads")
	}
	kube, err := kubernetes.NewForConfig(&rest.Config{Host: "127.0.0.1:1"})
	must(t, err)
	const within = time.Second
	request := wire.Request{Verb: wire.Create, Resource: ConfigMaps, Namespace: "another", Name: "web"}
	for name, test := range map[string]struct {
		text, late string
		open       bool
	}{
		"it needs a processor":      {text: "while :; do :; done"},
		"it waits for an answer":    {text: "exec sleep 300", open: true},
		"it waits for a timer only": {text: "exec sleep 300", late: "expected that it is there; but not within"},
	} {
		p := program(t, test.text)
		o := outcomeOf(t, time.Minute, func(c *T) {
			c.Operator.Began(p)
			for strings.HasPrefix(test.text, "exec") && !p.Asleep() {
				c.Pause(fixture.Poll)
			}
			if test.open {
				c.Fixture.Ledger.Begin("lab", request, nil)
			}
			begin := time.Now()
			isThere := func() error {
				if time.Since(begin) < 5*within {
					return errors.New("it is not")
				}
				return nil
			}
			c.Eventually("it is there", within, isThere)
			c.Fixture.Kube, c.Operator.patience = kube, within/10 // it does not answer: the check sees no rollout
			begin = time.Now()
			c.Reaction("it is there", time.Minute, isThere)
		})
		if !strings.HasPrefix(o.What, test.late) || (o.What == "") != (test.late == "") {
			t.Errorf("%s: %s", name, o.What)
		}
	}
}
