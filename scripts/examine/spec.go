package examine

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"example.com/operator-workshop/scripts/examine/state"
)

// specChanges changes the sample field by field, as its schema allows.
func specChanges(r *run) error {
	spec, _, _ := unstructured.NestedMap(r.target.sample.Object, "spec")
	all := variations(nil, r.target.spec, spec, usual)
	limit := 20
	if r.target.Fast {
		limit = 3
	}
	if len(all) == 0 {
		r.add("fields reach the children or are refused", skipped("the schema of spec has no field that can be varied"))
	}
	for n, v := range all {
		r.secrets.Publish(v.name())
		if n == limit || r.late() {
			r.leftOut("changes of the spec", len(all)-n, len(all))
			return nil
		}
		if err := r.check(v.String(), func(t *trial) (f Finding, err error) {
			f, err = t.varySpec(v)
			f.File, f.Line = r.target.placeOf(v.path)
			return f, err
		}); err != nil {
			return err
		}
	}
	return nil
}

// varySpec changes one field and then restores it.
func (t *trial) varySpec(v variation) (Finding, error) {
	if err := t.serve(); err != nil {
		return Finding{}, err
	}
	before, err := t.sample()
	if err != nil {
		return Finding{}, err
	}
	first, err := t.observeWithout(restless)
	if err != nil {
		return Finding{}, err
	}
	warnings, err := t.warnings()
	if err != nil {
		return Finding{}, err
	}
	mark, begin := t.fixture.Ledger.Mark(), time.Now()
	after, err := t.patchSpec(v, v.value)
	if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) {
		return passed("refused: %s", firstLine(apiMessage(err))), nil
	} else if err != nil {
		return Finding{}, err
	}
	if text(before.Object["spec"]) == text(after.Object["spec"]) {
		return skipped("the API server's defaults restore the old value"), nil
	}
	reached, err := t.reached(first, warnings)
	if err != nil {
		return Finding{}, err
	}
	ignored := len(reached) == 0
	if ignored { // the field may have had its default, or may matter only later
		if ignored, err = t.differsAnew(); err != nil {
			return Finding{}, err
		}
	}
	if _, err := t.patchSpec(v, v.was); err != nil {
		return failed("undoing the change is refused: %v", err), nil
	}
	if err := t.eventually(20*time.Second, t.asBefore); err != nil {
		var different differenceError
		switch {
		case !errors.As(err, &different):
			return Finding{}, err
		case t.jobsEnded(begin):
			return skipped("it reached %s; a Job of the sample has ended meanwhile, which no operator can undo",
				strings.Join(reached, ", ")), nil
		case different.onlyAnnotations():
			return failed("after the change was undone, only annotations differ from the first state").with(different...), nil
		}
		return failed("after the change was undone, the state is not the first one").with(different...), nil
	}
	left, err := t.leftBehind()
	switch {
	case err != nil:
		return Finding{}, err
	case ignored:
		return failed("accepted, and neither a child nor the status changed in %v",
			t.untilResync(t.patience(), time.Minute)).with(lines(t.writes(mark))...), nil
	case len(left) > 0:
		return failed("after the change was undone, objects for the other spec are left behind: %s",
			strings.Join(left, ", ")).with(lines(t.writes(mark))...), nil
	case len(reached) == 0 && v.value == nil:
		return passed("nothing changed, as nothing differs when a sample is created without it"), nil
	case len(reached) == 0:
		return skipped("neither a child nor the status depends on it here, also in a new sample: it is ignored, or matters " +
			"only later"), nil
	}
	return passed("it reached %s, and undoing the change restored the first state", reached[0]), nil
}

// jobsEnded reports whether a Job in the namespace has ended since a time.
func (t *trial) jobsEnded(since time.Time) bool {
	jobs, err := t.fixture.Kube.BatchV1().Jobs(t.scope()).List(t.ctx, metav1.ListOptions{})
	if err != nil {
		return false
	}
	return slices.ContainsFunc(jobs.Items, func(j batchv1.Job) bool { return hasEnded(j, since.Truncate(time.Second)) })
}

// hasEnded reports whether a Job has ended at a time or after it.
func hasEnded(j batchv1.Job, since time.Time) bool {
	return slices.ContainsFunc(j.Status.Conditions, func(c batchv1.JobCondition) bool {
		return (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue &&
			!c.LastTransitionTime.Time.Before(since)
	})
}

// asBefore returns nil when the state is that of an undisturbed run. The sample may have further conditions that are
// False, because a change is over: Updating.
func (t *trial) asBefore() error {
	got, err := t.observe()
	if err != nil {
		return err
	}
	conditions := t.own().String() + ".status.conditions["
	for path, value := range maps.Clone(got) {
		condition, isStatus := strings.CutSuffix(path, "].status")
		if _, known := t.state[path]; !known && isStatus && value == "False" && strings.HasPrefix(path, conditions) {
			maps.DeleteFunc(got, func(path, _ string) bool { return strings.HasPrefix(path, condition+"].") })
		}
	}
	return t.asUndisturbedIn(got)
}

// differsAnew reports whether another sample, created with the current spec of this sample, reaches a different
// state. The specs are not compared: a webhook may set defaults only at a creation.
func (t *trial) differsAnew() (bool, error) {
	now, err := t.sample()
	if err != nil || t.target.serial() {
		return true, err
	}
	other, err := t.newTrial(t.ctx)
	if err != nil {
		return false, err
	}
	defer other.clean()
	u := t.target.sample.DeepCopy()
	u.Object["spec"] = now.Object["spec"]
	if err := other.put(u); err != nil {
		return false, err
	}
	if err := other.await(40 * time.Second); err != nil {
		return true, nil
	}
	here, err := t.observe()
	if err != nil {
		return false, err
	}
	there, err := other.observe()
	if err != nil {
		return false, err
	}
	spec := t.own().String() + ".spec"
	for _, s := range []state.State{here, there} {
		maps.DeleteFunc(s, func(path, _ string) bool { return strings.HasPrefix(path, spec) })
	}
	return len(state.Differences(here, there, t.varying)) > 0, nil
}

// histories are kinds of which operators keep old objects on purpose.
var histories = []string{"replicasets.apps", "controllerrevisions.apps", "jobs.batch"}

// leftBehind are the objects that the sample owns besides its children of an undisturbed run.
func (t *trial) leftBehind() (names []string, err error) {
	owner, err := t.sample()
	if err != nil {
		return nil, err
	}
	err = t.eventually(t.patience(), func() error {
		owned, err := t.owned(t.ctx, owner.GetUID())
		if err != nil {
			return err
		}
		names = nil
		for _, c := range owned {
			if !slices.Contains(t.children, c) && !slices.Contains(histories, ledgerName(c)) {
				names = append(names, c.String())
			}
		}
		if len(names) > 0 {
			return errNothing
		}
		return nil
	})
	if errors.Is(err, errNothing) {
		err = nil
	}
	return names, err
}

func (t *trial) patchSpec(v variation, value any) (*unstructured.Unstructured, error) {
	patch, err := v.patch(value)
	if err != nil {
		return nil, err
	}
	return t.samples().Patch(t.ctx, t.target.sample.GetName(), types.MergePatchType, patch,
		metav1.PatchOptions{FieldManager: somebody})
}

func apiMessage(err error) string {
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		return status.Status().Message
	}
	return err.Error()
}

// warnings counts the events of type Warning about the sample, by message.
func (t *trial) warnings() (map[string]int32, error) {
	u, err := t.sample()
	if err != nil {
		return nil, err
	}
	events, err := t.fixture.Kube.CoreV1().Events(u.GetNamespace()).List(t.ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	all := map[string]int32{}
	for _, e := range events.Items {
		if e.InvolvedObject.UID == u.GetUID() && e.Type == corev1.EventTypeWarning {
			all[e.Message] += max(e.Count, 1)
		}
	}
	return all, nil
}

// reached are the places outside the spec that a change reached, or the warning that refuses the change. The first
// state comes from this trial, so that it also shows a port that the cluster chose before.
func (t *trial) reached(first state.State, warnings map[string]int32) (places []string, err error) {
	spec := t.own().String() + ".spec"
	err = t.eventually(t.untilResync(t.patience(), time.Minute), func() error {
		places = nil
		now, err := t.observeWithout(restless)
		if apierrors.IsNotFound(err) {
			places = []string{"a child that is gone"}
			return nil
		} else if err != nil {
			return err
		}
		for _, line := range state.Differences(now, first, t.varying) {
			if !strings.HasPrefix(line, spec) && !strings.HasPrefix(line, "…") {
				places = append(places, strings.Fields(line)[0])
			}
		}
		if len(places) > 0 {
			return nil
		}
		after, err := t.warnings()
		if err != nil {
			return err
		}
		for message, n := range after {
			if n > warnings[message] {
				places = append(places, "an event (Warning: "+shortened(firstLine(message), 200)+")")
			}
		}
		if len(places) == 0 {
			return errNothing
		}
		return nil
	})
	if errors.Is(err, errNothing) {
		err = nil
	}
	return places, err
}
