package suite

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"example.com/operator-workshop/scripts/examine/fixture"
	"example.com/operator-workshop/scripts/examine/ledger"
	"example.com/operator-workshop/scripts/examine/outcome"
	"example.com/operator-workshop/scripts/examine/supervisor"
	"example.com/operator-workshop/scripts/examine/wire"
)

// program starts a shell script as the operator of a check.
func program(t *testing.T, text string) *fixture.Process {
	t.Helper()
	path := filepath.Join(t.TempDir(), "operator")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o755); err != nil {
		t.Fatal(err)
	}
	p := &fixture.Process{}
	var err error
	if p.Process, err = supervisor.Start(supervisor.Command{Path: path, Env: os.Environ(), Output: p}); err != nil {
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
	if err != nil {
		t.Fatal(err)
	}
	const waits, works = "exec sleep 300", "while :; do :; done"
	gone := wire.Event{Type: "DELETED", Object: wire.Object{Kind: "ConfigMap", Namespace: "check", Name: "web"}}
	request := func(l *ledger.Ledger, namespace string, code int, ends bool) {
		id := l.Begin("lab", wire.Request{Verb: wire.Create, Resource: ConfigMaps, Namespace: namespace, Name: "web"}, nil)
		l.Change(id, func(e *ledger.Entry) { e.Code, e.Served = code, []int{code} })
		if ends {
			l.End(id)
		}
	}
	for name, test := range map[string]struct {
		program string
		event   bool
		then    func(*ledger.Ledger)
		certain bool
	}{
		"it got the event and waits":              {waits, true, nil, true},
		"it sent a request":                       {waits, true, func(l *ledger.Ledger) { request(l, "check", 201, true) }, true},
		"it needs a processor":                    {works, true, nil, false},
		"the event is on its way":                 {waits, false, nil, false},
		"its request is not answered":             {waits, true, func(l *ledger.Ledger) { request(l, "check", 0, false) }, false},
		"its request was refused":                 {waits, true, func(l *ledger.Ledger) { request(l, "check", 500, true) }, false},
		"it has a request in another namespace":   {waits, true, func(l *ledger.Ledger) { request(l, "other", 0, false) }, false},
		"the first events of a watch are to come": {waits, true, func(l *ledger.Ledger) { l.Begin("lab", wire.Request{Verb: wire.Watch, Resource: Services}, nil) }, false},
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
			gaveUp := strings.Contains(o.Reason, "it is back; but the operator sends nothing any more, and it is not")
			if o.Verdict != outcome.Failed || gaveUp != test.certain {
				t.Errorf("%s: %s", o.Verdict, o.Reason)
			}
		})
	}
}
