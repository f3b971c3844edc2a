package examine

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// findMutation looks for a field that the operator sets and that may have a different value.
func (r *run) findMutation() (m mutation, err error) {
	_, err = r.try(func(t *trial) (Finding, error) {
		if err := t.serve(); err != nil {
			return Finding{}, err
		}
		for _, c := range t.owns() {
			for _, p := range byUse(t.fields[c]) {
				pointer, _, other, err := t.change(c, p, metav1.PatchOptions{FieldManager: somebody,
					DryRun: []string{metav1.DryRunAll}})
				if err != nil {
					return Finding{}, err
				}
				if pointer != "" && (m.pointer == "" || p.isImage() && !m.path.isImage()) {
					m = mutation{c, p, pointer, other}
				}
				if pointer != "" {
					break
				}
			}
		}
		return Finding{}, nil
	})
	return m, err
}

// isImage reports whether a field is an image, which policies change most often.
func (p path) isImage() bool { return strings.HasSuffix(p.String(), ".image") }

// byUse returns the fields that policies change: no metadata, no selectors, images first.
func byUse(fields []path) []path {
	some := slices.DeleteFunc(slices.Clone(fields), func(p path) bool {
		return strings.Contains(p.String(), "metadata") || strings.Contains(strings.ToLower(p.String()), "selector")
	})
	slices.SortStableFunc(some, func(a, b path) int {
		switch {
		case a.isImage() == b.isImage():
			return 0
		case a.isImage():
			return -1
		}
		return 1
	})
	return some
}

// mutated creates the sample while a policy changes a field, observes the operator, and then removes the policy.
func (t *trial) mutated(m mutation) (Finding, error) {
	stop, err := t.mutate(m)
	if err != nil {
		return Finding{}, err
	}
	defer func() { _ = stop(t.ctx) }()
	if err := t.create(); err != nil {
		return Finding{}, err
	}
	there := func() error {
		u, err := t.at(m.child).Get(t.ctx, m.child.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if !samePlace(m.path, u.Object, m.value) {
			return errors.New("the policy did not change the field")
		}
		return nil
	}
	if err := t.eventually(20*time.Second, there); err != nil {
		return skipped("%v", err), nil
	}
	w, err := t.watch(time.Now(), t.fixture.Ledger.Mark())
	if err != nil {
		return Finding{}, err
	}
	reported, where, missing := t.reacts(m.child, t.noticed)
	if err := stop(t.ctx); err != nil {
		return Finding{}, err
	}
	begin, back := time.Now(), "as undisturbed %.1f s after the policy was deleted"
	if err = t.eventually(20*time.Second, t.asUndisturbed); err != nil {
		// No event reports that a policy is gone: an operator that does not poll may wait for the next event.
		back = "as undisturbed after the next event about " + m.child.String() + ", %.1f s after the policy was deleted"
		if err = t.touch(m.child); err == nil {
			err = t.eventually(20*time.Second, t.asUndisturbed)
		}
	}
	if err != nil && reported {
		// Its status reported that a user must act, and deleting the child works for each operator.
		back = "as undisturbed after " + m.child.String() + " was deleted, %.1f s after the policy was"
		if err = t.at(m.child).Delete(t.ctx, m.child.Name, metav1.DeleteOptions{}); err == nil {
			err = t.eventually(20*time.Second, t.asUndisturbed)
		}
	}
	if err != nil {
		return failed("after the policy was deleted, its change is there: %v", err).with(lines(t.writes(0))...), nil
	}
	return w.judge(where, fmt.Sprintf(back, time.Since(begin).Seconds()), reported, missing), nil
}

// touch causes an event about a child, and then restores the child.
func (t *trial) touch(c child) error {
	for _, value := range []string{`"yes"`, "null"} {
		patch := `{"metadata":{"annotations":{"example.com/touched":` + value + `}}}`
		_, err := t.at(c).Patch(t.ctx, c.Name, types.MergePatchType, []byte(patch),
			metav1.PatchOptions{FieldManager: somebody})
		if err != nil {
			return err
		}
	}
	return nil
}

// noticed reports whether the status differs from that of an undisturbed run.
func (t *trial) noticed() (found bool, where string) {
	now, err := t.observe()
	if err != nil {
		return true, "a child is missing"
	}
	status := t.own().String() + ".status"
	for _, line := range state.Differences(now, t.state, t.varying) {
		if strings.HasPrefix(line, status) {
			return true, "the status reports it (" + line + ")"
		}
	}
	return false, "the status is that of an undisturbed run"
}
