package examine

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"example.com/operator-workshop/scripts/examine/fixture"
	"example.com/operator-workshop/scripts/examine/ledger"
	"example.com/operator-workshop/scripts/examine/state"
	"example.com/operator-workshop/scripts/examine/wire"
)

// restoresStatus removes the status of the sample, as a careless client may do.
func (t *trial) restoresStatus() (Finding, error) {
	if err := t.idle(); err != nil {
		return Finding{}, err
	}
	u, err := t.sample()
	if err != nil {
		return Finding{}, err
	}
	if !t.hasStatus() {
		return skipped("its samples have no status"), nil
	}
	var subresources []string
	if !t.target.statusless {
		subresources = []string{"status"}
	}
	mark, begin := t.fixture.Ledger.Mark(), time.Now()
	_, err = t.samples().Patch(t.ctx, u.GetName(), types.MergePatchType, []byte(`{"status":null}`),
		metav1.PatchOptions{FieldManager: somebody}, subresources...)
	if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) {
		return skipped("the API server lets no client remove the status: %s", firstLine(apiMessage(err))), nil
	} else if err != nil {
		return Finding{}, err
	}
	err = t.eventually(t.patience(), t.statusIsBack)
	switch {
	case err == nil:
		return passed("the status was back after %.1f s, with %d writes", time.Since(begin).Seconds(),
			len(t.writes(mark))), nil
	case !errors.As(err, new(differenceError)):
		return Finding{}, err
	case t.awaitPeriod(begin, t.statusIsBack):
		return late("the status was back only after %.0f s", time.Since(begin).Seconds()), nil
	}
	how := "removed"
	if now, gone := t.sample(); gone == nil && now.Object["status"] != nil {
		how = "incomplete"
	}
	return failed("the status stayed %s for %.0f s", how, time.Since(begin).Seconds()).with(strings.Split(err.Error(), "\n")...).
		with(lines(t.writes(mark))...), nil
}

// statusIsBack returns nil when the state is that of an undisturbed run, after the status was removed.
func (t *trial) statusIsBack() error {
	got, err := t.observe()
	if err != nil {
		return err
	}
	return t.asUndisturbedIn(withFalse(got, t.state, t.own().String()+".status."))
}

// withFalse adds to a state the conditions of a status that are False and missing: many operators set a condition to
// False only when it has been True before. A status without any field is missing as a whole.
func withFalse(got, want state.State, status string) state.State {
	isStatus := func(path string) bool { return strings.HasPrefix(path, status) }
	if !slices.ContainsFunc(slices.Collect(maps.Keys(got)), isStatus) {
		return got
	}
	all := maps.Clone(got)
	for path, value := range want {
		condition, found := strings.CutSuffix(path, "].status")
		if _, known := got[path]; known || !found || value != "False" || !strings.HasPrefix(path, status+"conditions[") {
			continue
		}
		for path, value := range want {
			if strings.HasPrefix(path, condition+"].") {
				all[path] = value
			}
		}
	}
	return all
}

// fights is how often the lab scales a child as an autoscaler does, and fightPause the pause after each time.
const (
	fights     = 20
	fightPause = 500 * time.Millisecond
)

// scaled is the first child of which the operator sets the replicas, and that an autoscaler can scale.
func (r *run) scaled() (c child, ok bool) {
	for _, c := range r.owns() {
		scales := slices.Contains([]string{"deployments.apps", "statefulsets.apps"}, ledgerName(c))
		if scales && slices.ContainsFunc(r.fields[c], func(p path) bool { return p.String() == ".spec.replicas" }) {
			return c, true
		}
	}
	return c, false
}

// isScaled scales a child again and again, as an autoscaler does that wants another number of replicas than the operator.
func (t *trial) isScaled(c child) (Finding, error) {
	if err := t.idle(); err != nil {
		return Finding{}, err
	}
	u, err := t.at(c).Get(t.ctx, c.Name, metav1.GetOptions{})
	if err != nil {
		return Finding{}, err
	}
	replicas, _, _ := unstructured.NestedInt64(u.Object, "spec", "replicas")
	mark, begin := t.fixture.Ledger.Mark(), time.Now()
	for range fights {
		_, err := t.at(c).Patch(t.ctx, c.Name, types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas+1),
			metav1.PatchOptions{FieldManager: "autoscaler"}, "scale")
		if err := errors.Join(err, fixture.Pause(t.ctx, fightPause)); err != nil {
			return Finding{}, err
		}
	}
	writes := t.fixture.Ledger.Entries(t.mine(mark, wire.Writes...), ledger.Match{Resources: []string{ledgerName(c)}})
	what := fmt.Sprintf("an autoscaler changed the replicas %d times in %.0f s, and the operator wrote %d times", fights,
		time.Since(begin).Seconds(), len(writes))
	if len(writes) > fights/2 {
		return failed("%s: nothing slows it down", what).with(lines(writes)...), nil
	}
	return passed("%s", what), nil
}
