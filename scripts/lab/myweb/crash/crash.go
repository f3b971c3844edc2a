// Package crash kills an operator after every write, in every combination, and compares the end state with that of
// undisturbed runs.
package crash

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/operator-workshop/scripts/examine/fixture"
	"example.com/operator-workshop/scripts/examine/ledger"
	"example.com/operator-workshop/scripts/examine/outcome"
	"example.com/operator-workshop/scripts/examine/sequence"
	"example.com/operator-workshop/scripts/examine/state"
	"example.com/operator-workshop/scripts/examine/wire"
	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

// A path is a part of the life of a MyWeb in which the operator writes.
type path struct {
	name string
	// begin brings the operator to the beginning of the path, set starts it. Both are undisturbed.
	begin, set func(t *suite.T)

	keys    []sequence.Key // the writes, in the order of the first undisturbed run
	gate    int            // how many of them come before pods can be created
	writes  int            // number of writes of the undisturbed run with the most writes
	states  []state.State
	state   state.State // the common part of the states
	varying map[string]bool
}

// newPaths are the paths before their surveys.
func newPaths() []*path {
	return []*path{
		{name: "creation",
			begin: func(*suite.T) {},
			set:   func(t *suite.T) { t.Create(name, suite.Sample()) }},
		{name: "update",
			begin: func(t *suite.T) { t.Serve(name, suite.Sample()) },
			set: func(t *suite.T) {
				t.Patch(name, `{"spec":{"image":"nginx:1.29","pageContentHtml":"<h1>Again</h1>","replicas":2}}`)
			}},
	}
}

// undisturbed is the number of runs that define the normal result.
const undisturbed = 3

// Checks enumerates the crash sequences of an implementation from undisturbed runs, and returns each of them as a
// check that runs the operator alone:
//
//	crash/creation-01000   killed after the second of five writes
//	crash/update-1111      killed after each of four
//	crash/start-101-done   started where ConfigMap and Service exist, and the status reports completed
//
// Undisturbed runs that fail are outcomes, too, and then there are no checks.
func Checks(ctx context.Context, w *fixture.Fixture, o *suite.Operator) ([]suite.Check, []outcome.Result, error) {
	paths := newPaths()
	var surveys []suite.Check
	for _, p := range paths {
		for run := range undisturbed {
			surveys = append(surveys, suite.Check{ID: fmt.Sprintf("crash/%s-undisturbed-%d", p.name, run+1), Group: p.name,
				Title: "an undisturbed run, to compare with", Alone: true, Run: func(t *suite.T) { p.survey(t) }})
		}
	}
	outcomes, err := suite.Run(ctx, w, o, surveys, nil)
	if err != nil || outcome.Count(outcomes, outcome.Failed) > 0 {
		return nil, outcomes, err
	}
	var checks []suite.Check
	for _, p := range paths {
		p.state, p.varying = state.Common(p.states)
		checks = append(checks, p.sequences()...)
	}
	return append(checks, starts(paths[0])...), nil, nil
}

// Choose returns the checks of these IDs: of all, and of the crash sequences when an ID is that of one. Undisturbed runs
// that fail are outcomes.
func Choose(ctx context.Context, w *fixture.Fixture, o *suite.Operator, all []suite.Check, ids []string) (
	chosen []suite.Check, outcomes []outcome.Result, err error) {
	if slices.ContainsFunc(ids, func(id string) bool { return strings.HasPrefix(id, "crash/") }) {
		sequences, wrong, err := Checks(ctx, w, o)
		if err != nil {
			return nil, nil, err
		}
		all = slices.Concat(all, sequences)
		outcomes = slices.DeleteFunc(wrong, func(o outcome.Result) bool { return !slices.Contains(ids, o.ID) })
	}
	for _, id := range ids {
		at := slices.IndexFunc(all, func(c suite.Check) bool { return c.ID == id })
		switch {
		case at >= 0:
			chosen = append(chosen, all[at])
		case !slices.ContainsFunc(outcomes, func(o outcome.Result) bool { return o.ID == id }):
			return nil, nil, fmt.Errorf("there is no check %s", id)
		}
	}
	return chosen, outcomes, nil
}

// survey runs the path undisturbed and records its writes and its end state.
func (p *path) survey(t *suite.T) {
	p.begin(t)
	mark := t.Mark()
	release := t.Stop(fixture.Scheduler) // the writes before and after the release are then the same in every run
	p.set(t)
	t.AwaitQuiet(700 * time.Millisecond)
	before := len(t.Changes(mark))
	release()
	t.Completed(name)
	t.AwaitQuiet(700 * time.Millisecond)
	keys := sequence.KeysOf(t.Changes(mark))
	if p.keys == nil {
		p.keys, p.gate = keys, before
	} else if !sameKeys(keys, p.keys) {
		t.Fatalf("two undisturbed runs wrote %v and %v", p.keys, keys)
	}
	p.writes = max(p.writes, len(t.Writes(mark)))
	s, err := observe(t)
	t.Must(err, "read the state")
	p.states = append(p.states, s)
}

// sameKeys ignores the order, because an operator may write its children at once.
func sameKeys(a, b []sequence.Key) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(k sequence.Key) bool { return !slices.Contains(b, k) })
}

// sequences are the checks of the empty sequence and of all others.
func (p *path) sequences() (checks []suite.Check) {
	for _, s := range append([][]int{nil}, sequence.All(len(p.keys))...) {
		var plan []sequence.Key
		digits := bytes.Repeat([]byte("0"), len(p.keys))
		for _, i := range s {
			plan, digits[i] = append(plan, p.keys[i]), '1'
		}
		checks = append(checks, suite.Check{ID: "crash/" + p.name + "-" + string(digits), Group: p.name, Alone: true,
			Fast:  len(s) == 1 && p.name == "creation" || len(s) == len(p.keys),
			Title: title(plan, len(p.keys)), Run: func(t *suite.T) { p.execute(t, plan) }})
	}
	return checks
}

func title(plan []sequence.Key, all int) string {
	switch len(plan) {
	case 0:
		return "not killed at all"
	case all:
		return "killed after each write"
	}
	var words []string
	for _, k := range plan {
		words = append(words, short(k))
	}
	return "killed after " + strings.Join(words, ", ")
}

// short is a key in one word: the status, or the resource.
func short(k sequence.Key) string {
	resource, _, _ := strings.Cut(k.What, ".")
	if strings.HasSuffix(k.What, "/status") {
		resource = "status"
	}
	if k.N > 1 {
		return fmt.Sprintf("%s #%d", resource, k.N)
	}
	return resource
}

// execute kills the operator right after each write of the plan was committed. Each time, the process is started again.
func (p *path) execute(t *suite.T, plan []sequence.Key) {
	p.begin(t)
	mark := t.Mark()
	release := t.Stop(fixture.Scheduler)      // the writes before and after the release are then the same in every run
	for _, k := range slices.Backward(plan) { // rules that only count must see a request before the rule that kills
		t.Rule(k.Rule(ledger.Match{}, t.Operator.Kill))
	}
	keep := t.Supervise()
	p.set(t)
	t.Eventually("every write that comes before the pods", 0, func() error {
		if have := len(t.Changes(mark)); have < p.gate {
			return fmt.Errorf("%d of %d: %s", have, p.gate, suite.Lines(t.Changes(mark)))
		}
		return nil
	})
	release()
	p.judge(t, mark, len(plan))
	keep()
}

// judge waits for the end state and compares it with the undisturbed one.
func (p *path) judge(t *suite.T, mark, crashes int) {
	observe := func() error {
		got, err := observe(t)
		if err != nil {
			return err
		}
		if lines := state.Differences(got, p.state, p.varying); len(lines) > 0 {
			return errors.New(strings.Join(lines, "\n"))
		}
		return nil
	}
	t.Eventually("the end is as undisturbed", 0, observe)
	t.AwaitQuiet(500 * time.Millisecond)
	t.Must(observe(), "in steady state")
	if twice := sequence.CreatedTwice(t.Writes(mark)); twice != "" {
		t.Errorf("%s was created twice", twice)
	}
	for _, e := range t.Requests(mark, wire.Delete, wire.DeleteCollection) {
		if e.Committed() {
			t.Errorf("the operator deleted: %v", e)
		}
	}
	if writes := t.Writes(mark); len(writes) > p.writes+crashes {
		t.Errorf("%d writes, undisturbed %d, and one more is fair for each of %d crashes: %s", len(writes), p.writes, crashes,
			suite.Lines(writes))
	}
}

// starts are the 16 states in which an operator may find a MyWeb when it starts: every subset of the children, and a
// status that is empty or reports completed.
func starts(p *path) (checks []suite.Check) {
	for mask := range uint(1) << len(suite.Kinds) {
		var there, missing []string
		id, words := "", []string{}
		for i, child := range suite.Kinds {
			if mask>>i&1 == 1 {
				there, words = append(there, child), append(words, suite.GVR(child).Resource)
			} else {
				missing = append(missing, child)
			}
			id += fmt.Sprint(mask >> i & 1)
		}
		for _, status := range []string{"empty", "done"} {
			checks = append(checks, suite.Check{ID: fmt.Sprintf("crash/start-%s-%s", id, status), Group: "start", Alone: true,
				Fast: status == "done" && len(there)%2 == 0,
				Title: fmt.Sprintf("found at its start: %s; status %s", cmp.Or(strings.Join(words, ", "), "no child"),
					map[string]string{"empty": "empty", "done": "says completed"}[status]),
				Run: func(t *suite.T) { p.startWithout(t, missing, status == "empty") }})
		}
	}
	return checks
}

// startWithout lets the operator create its children, and deletes some while it is dead, so that the others are
// exactly as the operator made them.
func (p *path) startWithout(t *suite.T, missing []string, empty bool) {
	t.Serve(name, suite.Sample())
	t.Operator.Kill()
	for _, child := range missing {
		t.Remove(child, name)
		if child == suite.Deployments {
			withoutReplicaSets(t)
		}
	}
	if empty {
		t.Falsify(name, `{"status":null}`)
	}
	mark := t.Mark()
	t.Must(t.Operator.Start(t.Ctx), "start the operator")
	p.judge(t, mark, 0)
	if made := t.Changes(mark); len(made) > p.writes-(len(suite.Kinds)-len(missing)) {
		t.Errorf("%d changes, though %d children were there: %s", len(made), len(suite.Kinds)-len(missing), suite.Lines(made))
	}
}

// withoutReplicaSets waits for the garbage collector. A new Deployment that found a ReplicaSet of the old Deployment
// with the name that it needs would count a collision, and choose another name.
func withoutReplicaSets(t *suite.T) {
	t.Eventually("the ReplicaSets of the deleted Deployment are gone", 0, func() error {
		sets, err := t.Fixture.Kube.AppsV1().ReplicaSets(t.Namespace).List(t.Ctx, metav1.ListOptions{})
		if err == nil && len(sets.Items) > 0 {
			err = fmt.Errorf("%s is there", sets.Items[0].Name)
		}
		return err
	})
}
