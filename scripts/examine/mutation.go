package examine

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"example.com/operator-workshop/scripts/examine/state"
)

// A mutation is a different value in a field of a child.
type mutation struct {
	child   child
	path    path
	pointer string
	value   any
}

// policyChanges makes a policy change one field of a child of each kind, and keep a field that the sample changes.
func (r *run) policyChanges() error {
	const what, one = "policies that change a child", "a policy changes a field that it sets"
	if r.late() {
		r.leftOut(what, 1, 1)
		return nil
	}
	mutations, err := r.findMutations()
	if err != nil {
		return r.judge(one, func() (Finding, error) { return Finding{}, err })
	}
	if len(mutations) == 0 {
		r.add(one, skipped("no field that it sets has another value that the API server accepts"))
		return nil
	}
	all := []disturbance{{keepsField, false, nil}}
	if !r.target.Fast {
		all[0] = r.policyKeeps()
	}
	for n, m := range mutations {
		d := disturbance{fmt.Sprintf("a policy changes %s of %s", m.path, m.child), n == 0,
			func(t *trial) (Finding, error) { return t.mutated(m) }}
		if n == 0 {
			all = slices.Insert(all, 0, d)
		} else {
			all = append(all, d)
		}
	}
	return r.each(what, all)
}

// findMutations looks for a field of a child of each kind that the operator sets and that may have a different value:
// first an image, which policies change most often.
func (r *run) findMutations() (all []mutation, err error) {
	_, err = r.try(func(t *trial) (Finding, error) {
		if err := t.serve(); err != nil {
			return Finding{}, err
		}
		for _, c := range t.owns() {
			m, err := t.mutationOf(c)
			if err != nil {
				return Finding{}, err
			}
			same := slices.IndexFunc(all, func(o mutation) bool { return ledgerName(o.child) == ledgerName(c) })
			switch {
			case m.pointer == "":
			case same < 0:
				all = append(all, m)
			case m.path.isImage() && !all[same].path.isImage():
				all[same] = m
			}
		}
		return Finding{}, nil
	})
	slices.SortStableFunc(all, func(a, b mutation) int { return imagesFirst(a.path, b.path) })
	return all, err
}

// mutationOf is a mutation of a child. The pointer is empty when the API server accepts none.
func (t *trial) mutationOf(c child) (m mutation, err error) {
	for _, p := range byUse(t.fields[c]) {
		pointer, _, other, err := t.change(c, p, metav1.PatchOptions{FieldManager: somebody,
			DryRun: []string{metav1.DryRunAll}})
		if err != nil || pointer != "" {
			return mutation{c, p, pointer, other}, err
		}
	}
	return m, nil
}

// isImage reports whether a field is an image, which policies change most often.
func (p path) isImage() bool { return strings.HasSuffix(p.String(), ".image") }

// byUse returns the fields that policies change: no metadata, no selectors, images first.
func byUse(fields []path) []path {
	some := slices.DeleteFunc(slices.Clone(fields), func(p path) bool {
		return strings.Contains(p.String(), "metadata") || strings.Contains(strings.ToLower(p.String()), "selector")
	})
	slices.SortStableFunc(some, imagesFirst)
	return some
}

// imagesFirst sorts images before other fields.
func imagesFirst(a, b path) int {
	switch {
	case a.isImage() == b.isImage():
		return 0
	case a.isImage():
		return -1
	}
	return 1
}

// mutated creates the sample while a policy changes a field, observes the operator, and then removes the policy.
func (t *trial) mutated(m mutation) (Finding, error) {
	stop, err := t.mutate(m)
	if err != nil {
		return Finding{}, err
	}
	if err := t.create(); err != nil {
		return Finding{}, err
	}
	there := func() error {
		u, err := t.at(m.child).Get(t.Ctx, m.child.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if !samePlace(m.path, u.Object, m.value) {
			return errors.New("the policy did not change the field")
		}
		return nil
	}
	if err := t.Eventually(20*time.Second, there); err != nil {
		return skipped("%v", err), nil
	}
	return t.againstPolicy(m.child, stop, goal{t.state, t.varying}, nil)
}

// againstPolicy observes the operator while a policy changes a child, and then removes the policy. The operator must report
// the change, also by events besides the earlier warnings, and then reach the state that it reaches without the policy.
func (t *trial) againstPolicy(c child, stop func() error, without goal,
	warnings map[string]int32) (Finding, error) {
	w, err := t.watch(time.Now(), t.Mark())
	if err != nil {
		return Finding{}, err
	}
	if err := t.quiet(restFor); err != nil && !errors.Is(err, errRestless) { // a status during a rollout is no report
		return Finding{}, err
	}
	reported, where, missing := t.reacts(c, func() (bool, string) { return t.noticed(without, warnings) })
	if err := stop(); err != nil {
		return Finding{}, err
	}
	isBack := func() error {
		got, err := t.observe()
		if err != nil {
			return err
		}
		return without.isReached(got)
	}
	begin, back := time.Now(), "as undisturbed %.1f s after the policy was deleted"
	if err = t.Eventually(t.patience(), isBack); err != nil {
		// No event reports that a policy is gone: an operator that does not poll may wait for the next event.
		back = "as undisturbed after the next event about " + c.String() + ", %.1f s after the policy was deleted"
		within := 20 * time.Second
		if reported {
			within = t.patience()
		}
		if err = t.touch(c); err == nil {
			err = t.Eventually(within, isBack)
		}
	}
	if err != nil && reported {
		// Its status reported that a user must act, and deleting the child works for each operator.
		back = "as undisturbed after " + c.String() + " was deleted, %.1f s after the policy was"
		if err = t.at(c).Delete(t.Ctx, c.Name, metav1.DeleteOptions{}); err == nil {
			err = t.Eventually(20*time.Second, isBack)
		}
	}
	if err != nil {
		return failed("after the policy was deleted, its change is there: %v", err).with(lines(t.Writes(0))...), nil
	}
	return w.judge(where, fmt.Sprintf(back, time.Since(begin).Seconds()), reported, missing), nil
}

// touch causes an event about a child, and then restores the child.
func (t *trial) touch(c child) error {
	for _, value := range []string{`"yes"`, "null"} {
		patch := `{"metadata":{"annotations":{"example.com/touched":` + value + `}}}`
		_, err := t.at(c).Patch(t.Ctx, c.Name, types.MergePatchType, []byte(patch),
			metav1.PatchOptions{FieldManager: somebody})
		if err != nil {
			return err
		}
	}
	return nil
}

// A goal is the end state without a policy, and the paths whose values vary.
type goal struct {
	state   state.State
	varying map[string]bool
}

// isReached returns nil when a state is the goal.
func (g goal) isReached(got state.State) error {
	if lines := state.Differences(got, g.state, g.varying); len(lines) > 0 {
		return differenceError(lines)
	}
	return nil
}

// noticed reports whether the status differs from that of a goal, or is of an earlier generation, or a new event warns.
func (t *trial) noticed(without goal, warnings map[string]int32) (found bool, where string) {
	now, err := t.observe()
	if err != nil {
		return true, "a child is missing"
	}
	status := goal{t.statusIn(without.state), without.varying}
	if err := status.isReached(t.statusIn(now)); err != nil {
		return true, "the status reports it (" + firstLine(err.Error()) + ")"
	}
	u, err := t.sample()
	if err != nil {
		return true, err.Error()
	}
	observed, ok, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration")
	if ok && observed < u.GetGeneration() {
		return true, fmt.Sprintf("the status is that of generation %d, not %d", observed, u.GetGeneration())
	}
	if message, err := t.newWarning(warnings); err == nil && message != "" {
		return true, "an event reports it (Warning: " + message + ")"
	}
	return false, "the status is that of a run without the policy"
}

// statusIn is the part of a state that is the status of the sample. The name of another ReplicaSet in it reports nothing.
func (t *trial) statusIn(all state.State) state.State {
	status := maps.Clone(all)
	maps.DeleteFunc(status, func(path, _ string) bool { return !strings.HasPrefix(path, t.own().String()+".status") })
	maskHashes(status)
	return status
}
