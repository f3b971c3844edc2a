// Package crash kills an operator after every write, in every combination, and compares the end state with that of
// undisturbed runs.
package crash

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"example.com/operator-workshop/scripts/lab/engine/fixture"
	"example.com/operator-workshop/scripts/lab/engine/ledger"
	"example.com/operator-workshop/scripts/lab/engine/proxy"
	"example.com/operator-workshop/scripts/lab/engine/state"
	"example.com/operator-workshop/scripts/lab/myweb"
	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

// Groups name the families of experiments.
var Groups = []string{"creation", "update", "start"}

// A path is a part of the life of a MyWeb in which the operator writes.
type path struct {
	name string
	// begin brings the operator to the beginning of the path, set starts it. Both are undisturbed.
	begin, set func(t *suite.T)

	keys    []key // the writes, in the order of the first undisturbed run
	gate    int   // how many of them come before pods can be created
	writes  int   // number of writes of the undisturbed run with the most writes
	states  []state.State
	state   state.State // the common part of the states
	varying map[string]bool
}

// A key names a write: the n-th write of its kind that changes this object.
type key struct {
	verb, what string
	n          int
}

func (k key) String() string {
	if k.n > 1 {
		return fmt.Sprintf("%s %s #%d", k.verb, k.what, k.n)
	}
	return k.verb + " " + k.what
}

var creation = path{name: "creation",
	begin: func(*suite.T) {},
	set:   func(t *suite.T) { t.Create(name, suite.Sample()) },
}

var update = path{name: "update",
	begin: func(t *suite.T) { t.Serve(name, suite.Sample()) },
	set: func(t *suite.T) {
		t.Patch(name, `{"spec":{"image":"nginx:1.29","pageContentHtml":"<h1>Again</h1>","replicas":2}}`)
	},
}

// undisturbed is the number of runs that define the normal result.
const undisturbed = 3

// most limits the number of writes: n writes make 2^n crash sequences; above the limit, only single crashes and pairs
// are tried.
const most = 6

// Checks enumerates the crash sequences of an implementation from undisturbed runs, and returns each of them as a
// check that runs the operator alone:
//
//	crash/creation-01000   killed after the second of five writes
//	crash/update-1111      killed after each of four
//	crash/start-101-done   started where ConfigMap and Service exist, and the status reports completed
//
// Undisturbed runs that fail are outcomes, too, and then there are no checks.
func Checks(ctx context.Context, w *fixture.Fixture, o *suite.Operator) ([]suite.Check, []suite.Outcome, error) {
	paths := []*path{clone(creation), clone(update)}
	var surveys []suite.Check
	for _, p := range paths {
		for run := range undisturbed {
			surveys = append(surveys, suite.Check{ID: fmt.Sprintf("crash/%s-undisturbed-%d", p.name, run+1), Group: p.name,
				Title: "an undisturbed run, to compare with", Alone: true, Run: func(t *suite.T) { p.survey(t) }})
		}
	}
	outcomes, err := suite.Run(ctx, w, o, surveys, nil)
	if err != nil || suite.Count(outcomes, suite.Failed) > 0 {
		return nil, outcomes, err
	}
	var checks []suite.Check
	for _, p := range paths {
		p.state, p.varying = state.Common(p.states)
		checks = append(checks, p.sequences()...)
	}
	return append(checks, starts(paths[0])...), nil, nil
}

func clone(p path) *path { return &p }

// survey runs the path undisturbed and records its writes and its end state.
func (p *path) survey(t *suite.T) {
	p.begin(t)
	mark := t.Mark()
	hold(t)
	p.set(t)
	t.AwaitQuiet(700 * time.Millisecond)
	before := len(t.Changes(mark))
	release(t)
	t.Completed(name)
	t.AwaitQuiet(700 * time.Millisecond)
	keys := keysOf(t.Changes(mark))
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

func keysOf(changes []ledger.Entry) (keys []key) {
	seen := map[key]int{}
	for _, e := range changes {
		k := key{verb: e.Verb, what: e.FullResource()}
		seen[k]++
		k.n = seen[k]
		keys = append(keys, k)
	}
	return keys
}

// sameKeys ignores the order, because an operator may write its children at once.
func sameKeys(a, b []key) bool {
	sorted := func(keys []key) []key {
		return slices.SortedFunc(slices.Values(keys), func(a, b key) int { return cmp.Compare(a.String(), b.String()) })
	}
	return slices.Equal(sorted(a), sorted(b))
}

// sequences are all subsets of the writes, including the empty one.
func (p *path) sequences() (checks []suite.Check) {
	for mask := range uint(1) << len(p.keys) {
		crashes := bits.OnesCount(mask)
		if len(p.keys) > most && crashes > 2 {
			continue
		}
		var plan []key
		digits := ""
		for i, k := range p.keys {
			hit := mask>>i&1 == 1
			if hit {
				plan = append(plan, k)
			}
			digits += map[bool]string{true: "1", false: "0"}[hit]
		}
		checks = append(checks, suite.Check{ID: "crash/" + p.name + "-" + digits, Group: p.name, Alone: true,
			Fast: crashes == 1 && p.name == creation.name || crashes == len(p.keys), Title: title(plan, len(p.keys)),
			Run: func(t *suite.T) { p.execute(t, plan) }})
	}
	slices.SortStableFunc(checks, func(a, b suite.Check) int {
		return cmp.Compare(strings.Count(a.ID, "1"), strings.Count(b.ID, "1"))
	})
	return checks
}

func title(plan []key, all int) string {
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
func short(k key) string {
	resource, _, _ := strings.Cut(k.what, ".")
	if strings.HasSuffix(k.what, "/status") {
		resource = "status"
	}
	if k.n > 1 {
		return fmt.Sprintf("%s #%d", resource, k.n)
	}
	return resource
}

// execute kills the operator right after each write of the plan was committed: the proxy has the API server's answer,
// kills the process, and drops the connection. Each time, the process is started again.
func (p *path) execute(t *suite.T, plan []key) {
	p.begin(t)
	mark := t.Mark()
	hold(t)
	for _, k := range slices.Backward(plan) { // rules that only count must see a request before the rule that kills
		t.Rule(proxy.Rule{Name: "kill after " + k.String(), Moment: proxy.After, Skip: k.n - 1, Times: 1,
			Match: ledger.Match{Verbs: []string{k.verb}, Resources: []string{k.what}, Where: ledger.Entry.Committed},
			Do: proxy.Call(func(*proxy.Exchange) proxy.Action {
				t.Operator.Process().Kill()
				return proxy.Drop()
			})})
	}
	keep := supervise(t)
	p.set(t)
	t.Eventually("every write that comes before the pods", 0, func() error {
		if have := len(t.Changes(mark)); have < p.gate {
			return fmt.Errorf("%d of %d: %s", have, p.gate, suite.Lines(t.Changes(mark)))
		}
		return nil
	})
	release(t)
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
	creations := map[string]int{}
	for _, e := range t.Writes(mark) {
		if slices.Contains(e.Served, 201) {
			creations[e.FullResource()+" "+e.Name]++
		}
		if strings.HasPrefix(e.Verb, "delete") && e.Committed() {
			t.Errorf("the operator deleted: %v", e)
		}
	}
	for what, n := range creations {
		if n > 1 {
			t.Errorf("%s was created %d times", what, n)
		}
	}
	if writes := t.Writes(mark); len(writes) > p.writes+crashes {
		t.Errorf("%d writes, undisturbed %d, and one more is fair for each of %d crashes: %s", len(writes), p.writes, crashes,
			suite.Lines(writes))
	}
}

// supervise restarts the operator whenever it was killed, until the returned function is called. An operator that
// ends by itself fails the check.
func supervise(t *suite.T) (stop func()) {
	end := t.Operator.Supervise(t.Context(), func(p *fixture.Process) error {
		if exit := p.Exit(); exit.Signal != syscall.SIGKILL || strings.Contains(p.Output(), "panic:") {
			return fmt.Errorf("the operator %v by itself:\n%s", exit,
				strings.Join(append(p.LastLines(3, "panic"), p.LastLines(20, "")...), "\n"))
		}
		return nil
	}, func() error {
		if _, err := t.Operator.Launch(); err != nil {
			return fmt.Errorf("start again: %w", err)
		}
		return nil
	})
	stop = sync.OnceFunc(func() {
		if err := end(); err != nil {
			t.Errorf("%v", err)
		}
	})
	t.Cleanup(func(context.Context) { stop() })
	return stop
}

// hold stops the scheduler, so that no pod becomes ready before release. The operator's writes before and after the
// release are then the same in every run.
func hold(t *suite.T) {
	t.Must(t.Fixture.Signal(fixture.Scheduler, syscall.SIGSTOP), "stop the scheduler")
	t.Cleanup(func(context.Context) { release(t) })
}

func release(t *suite.T) {
	if err := t.Fixture.Signal(fixture.Scheduler, syscall.SIGCONT); err != nil {
		t.Errorf("let the scheduler go on: %v", err)
	}
}

// starts are the 16 states in which an operator may find a MyWeb when it starts: every subset of the children, and a
// status that is empty or reports completed.
func starts(p *path) (checks []suite.Check) {
	for mask := range uint(1) << len(children) {
		var there, missing []schema.GroupVersionResource
		id, words := "", []string{}
		for i, child := range children {
			if mask>>i&1 == 1 {
				there, words = append(there, child), append(words, child.Resource)
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
func (p *path) startWithout(t *suite.T, missing []schema.GroupVersionResource, empty bool) {
	t.Serve(name, suite.Sample())
	t.Operator.Kill()
	for _, child := range missing {
		t.Must(t.Fixture.Dynamic.Resource(child).Namespace(t.Namespace).Delete(t.Context(), name, metav1.DeleteOptions{}),
			"delete a child")
		if child.Resource == "deployments" {
			withoutReplicaSets(t)
		}
	}
	if empty {
		_, err := t.Fixture.Dynamic.Resource(myweb.MyWebs).Namespace(t.Namespace).
			Patch(t.Context(), name, types.MergePatchType, []byte(`{"status":null}`), metav1.PatchOptions{}, "status")
		t.Must(err, "empty the status")
	}
	mark := t.Mark()
	t.Must(t.Operator.Start(t.Context()), "start the operator")
	p.judge(t, mark, 0)
	if made := t.Changes(mark); len(made) > p.writes-(len(children)-len(missing)) {
		t.Errorf("%d changes, though %d children were there: %s", len(made), len(children)-len(missing), suite.Lines(made))
	}
}

// withoutReplicaSets waits for the garbage collector. A new Deployment that found a ReplicaSet of the old Deployment
// with the name that it needs would count a collision, and choose another name.
func withoutReplicaSets(t *suite.T) {
	t.Eventually("the ReplicaSets of the deleted Deployment are gone", 0, func() error {
		sets, err := t.Fixture.Kube.AppsV1().ReplicaSets(t.Namespace).List(t.Context(), metav1.ListOptions{})
		if err == nil && len(sets.Items) > 0 {
			err = fmt.Errorf("%s is there", sets.Items[0].Name)
		}
		return err
	})
}

// Replay returns only the check with this ID.
func Replay(checks []suite.Check, id string) ([]suite.Check, error) {
	at := slices.IndexFunc(checks, func(c suite.Check) bool { return c.ID == id })
	if at < 0 {
		all := map[string]string{}
		for _, c := range checks {
			all[c.Group] = c.ID
		}
		return nil, fmt.Errorf("there is no crash sequence %q; there are such as %s", id,
			strings.Join(slices.Sorted(maps.Values(all)), ", "))
	}
	return checks[at : at+1], nil
}
