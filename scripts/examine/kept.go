package examine

import (
	"errors"
	"fmt"
	"maps"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"example.com/operator-workshop/scripts/examine/ledger"
	"example.com/operator-workshop/scripts/examine/state"
	"example.com/operator-workshop/scripts/examine/wire"
)

// An edit is a change of the sample that reaches a field of a child. The goal is the end state with the change.
type edit struct {
	variation variation
	child     child
	path      path
	goal      goal
}

// mostEdits is how many changes of the sample are tried until one reaches a field.
const mostEdits = 4

// keepsField is the title of the trial until its field is known.
const keepsField = "a policy keeps a field that the sample changes"

// policyKeeps is the trial in which a policy keeps a field of a child as it was while the sample changes.
func (r *run) policyKeeps() disturbance {
	all, _ := r.target.variations(usual)
	tried := 0
	for _, v := range all[:min(len(all), mostEdits)] {
		if r.late() {
			break
		}
		e, err := r.findEdit(v)
		if err != nil && !errors.Is(err, errOver) {
			return disturbance{keepsField, false, func(*trial) (Finding, error) { return Finding{}, err }}
		}
		if tried++; e.path != nil {
			title := fmt.Sprintf("a policy keeps %s of %s as it was when %s changes", e.path, e.child, v.name())
			return disturbance{title, false, func(t *trial) (Finding, error) { return t.keeps(e) }}
		}
	}
	return disturbance{keepsField, false, func(*trial) (Finding, error) {
		return skipped("%d of %d changes of the sample reach no field that it sets", tried, len(all)), nil
	}}
}

// findEdit makes a change of the sample twice, to know which values of its end state vary, such as the name of one more pod.
// The path is nil when no field has the change.
func (r *run) findEdit(v variation) (e edit, err error) {
	var ends []state.State
	for range 2 {
		_, err = r.try(func(t *trial) (Finding, error) {
			e, err = t.edited(v)
			return Finding{}, err
		})
		if err != nil || e.path == nil {
			return edit{}, err
		}
		ends = append(ends, e.goal.state)
	}
	e.goal.state, e.goal.varying = state.Common(ends)
	maps.Copy(e.goal.varying, r.varying)
	return e, nil
}

// edited changes a sample that is ready. It returns the first field that the operator sets and that the change reached, and
// the end state. The path is nil when there is none.
func (t *trial) edited(v variation) (e edit, err error) {
	if err := t.serve(); err != nil {
		return e, err
	}
	before := map[child]*unstructured.Unstructured{}
	for _, c := range t.owns() {
		if before[c], err = t.at(c).Get(t.Ctx, c.Name, metav1.GetOptions{}); err != nil {
			return e, err
		}
	}
	if _, err := t.patchSpec(v, v.value); err != nil {
		return e, nil // refused
	}
	wait := t.untilResync(t.patience(), time.Minute)
	if t.Eventually(wait, func() error { _, _, err := t.changedField(before); return err }) != nil {
		return e, nil
	}
	if t.await(40*time.Second) != nil {
		return e, nil
	}
	if err := t.quiet(2 * restFor); err != nil && !errors.Is(err, errRestless) { // a sample can be ready during a rollout
		return e, err
	}
	c, p, err := t.changedField(before) // of all children that the change reached
	if err != nil {
		return e, nil
	}
	now, err := t.observe()
	return edit{v, c, p, goal{state: now}}, err
}

// changedField is the first field that the operator sets and that has another value than before.
func (t *trial) changedField(before map[child]*unstructured.Unstructured) (child, path, error) {
	for _, c := range t.owns() {
		now, err := t.at(c).Get(t.Ctx, c.Name, metav1.GetOptions{})
		if err != nil {
			return child{}, nil, err
		}
		for _, p := range byUse(t.fields[c]) {
			_, was, had := p.find(before[c].Object)
			_, _, has := p.find(now.Object)
			if had && has && !samePlace(p, now.Object, was) {
				return c, p, nil
			}
		}
	}
	return child{}, nil, errNothing
}

// keeps makes a policy keep a field of a child as it is, and then changes the sample so that the operator changes the field.
func (t *trial) keeps(e edit) (Finding, error) {
	if err := t.rest(); err != nil {
		return Finding{}, err
	}
	u, err := t.at(e.child).Get(t.Ctx, e.child.Name, metav1.GetOptions{})
	if err != nil {
		return Finding{}, err
	}
	pointer, was, _ := e.path.find(u.Object)
	if pointer == "" {
		return skipped("this sample has no such field"), nil
	}
	warnings, err := t.warnings()
	if err != nil {
		return Finding{}, err
	}
	stop, err := t.mutate(mutation{e.child, e.path, pointer, was})
	if err != nil {
		return Finding{}, err
	}
	mark := t.Mark()
	if _, err := t.patchSpec(e.variation, e.variation.value); err != nil {
		return Finding{}, err
	}
	writes := t.Mine(mark, wire.Writes...)
	err = t.Eventually(20*time.Second, func() error {
		if len(t.fixture.Ledger.Entries(writes, ledger.Match{Resources: []string{ledgerName(e.child)}})) == 0 {
			return errors.New("the operator did not write the child")
		}
		return nil
	})
	if err != nil {
		return skipped("%v", err), nil
	}
	return t.againstPolicy(e.child, stop, e.goal, warnings)
}
