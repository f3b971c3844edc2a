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

// specChanges changes the sample field by field, as its schema allows: the fields may be under spec, or anywhere else.
func specChanges(r *run) error {
	all, names := r.target.variations(usual)
	limit := 20
	if r.target.Fast {
		limit = 3
	}
	if len(all) == 0 {
		r.add("fields reach the children or are refused", skipped("the lab knows no other value for the fields, as of a list, an unset "+
			"text, and a text with a pattern or a format: %s", looked(names)))
	}
	for n, v := range all {
		r.secrets.Publish(v.name())
		if n == limit || r.late() {
			r.leftOut("changes of the spec", len(all)-n, len(all))
			break
		}
		if err := r.check(v.String(), func(t *trial) (f Finding, err error) {
			f, err = t.varySpec(v)
			f.File, f.Line = r.target.placeOf(v.path)
			return f, err
		}); err != nil {
			return err
		}
	}
	if len(r.annotations) > 0 {
		r.add("annotations depend on the spec alone", failed("after a change was undone, only annotations differ from the first "+
			"state").with(r.annotations...))
	}
	return nil
}

// looked are the names of the fields that the lab looked at.
func looked(names []string) string {
	if len(names) == 0 {
		return "the schema has none outside metadata and status"
	}
	return strings.Join(names, ", ")
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
	mark, begin := t.Mark(), time.Now()
	after, err := t.patchSpec(v, v.value)
	if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) {
		return passed("refused: %s", firstLine(apiMessage(err))), nil
	} else if err != nil {
		return Finding{}, err
	}
	if v.at(before) == v.at(after) {
		return skipped("the API server's defaults restore the old value"), nil
	}
	reached, err := t.reached(v, first, warnings)
	if err != nil {
		return Finding{}, err
	}
	changed := first
	if len(reached) == 0 {
		if changed, err = t.observeWithout(restless); err != nil {
			return Finding{}, err
		}
	}
	writes := lines(t.Writes(mark))
	if _, err := t.patchSpec(v, v.was); err != nil && t.target.builtIn && apierrors.IsInvalid(err) {
		return skipped("the API server lets no client undo the change: %v", err), nil
	} else if err != nil {
		return failed("undoing the change is refused: %v", err), nil
	}
	if err := t.awaitFirstState(v, 20*time.Second); err != nil {
		return t.notFirstState(err, mark, begin, reached)
	}
	if len(reached) == 0 {
		if reached, err = t.followed(first, changed); err != nil {
			return Finding{}, err
		}
	}
	return t.judgeUndone(v, reached, writes, lines(t.Writes(mark)))
}

// judgeUndone is the finding about a change that reached some places, with some writes, and was undone: all is the writes until
// then.
func (t *trial) judgeUndone(v variation, reached, writes, all []string) (Finding, error) {
	left, err := t.leftBehind()
	ignored := err == nil && len(reached) == 0
	if ignored { // the field may have had its default, or may matter only later
		ignored, err = t.differsAnew(v)
	}
	switch {
	case err != nil:
		return Finding{}, err
	case len(left) > 0:
		return failed("after the change was undone, objects for the other spec are left behind: %s",
			strings.Join(left, ", ")).with(all...), nil
	case ignored:
		return failed("accepted, and neither a child nor the status changed in %v",
			t.untilResync(t.patience(), time.Minute)).with(writes...), nil
	case len(reached) == 0 && v.value == nil:
		return passed("nothing changed, as nothing differs when a sample is created without it"), nil
	case len(reached) == 0:
		return skipped("neither a child nor the status depends on it here, also in a new sample: it is ignored, or matters " +
			"only later"), nil
	}
	apart := ""
	if len(t.annotations) > 0 {
		apart = ", apart from annotations"
	}
	return passed("it reached %s, and undoing the change restored the first state%s", reached[0], apart), nil
}

// notFirstState is the finding about a sample that did not return to its first state after a change was undone. The change
// began at a mark and at a time, and reached some places.
func (t *trial) notFirstState(err error, mark int, begin time.Time, reached []string) (Finding, error) {
	var different differenceError
	switch {
	case apierrors.IsNotFound(err):
		return failed("after the change was undone, the state is not the first one: %v", err).with(lines(t.Writes(mark))...), nil
	case !errors.As(err, &different):
		return Finding{}, err
	case t.jobsEnded(begin):
		return skipped("it reached %s; a Job of the sample has ended meanwhile, which no operator can undo",
			strings.Join(reached, ", ")), nil
	}
	return failed("after the change was undone, the state is not the first one").with(different...), nil
}

// jobsEnded reports whether a Job in the namespace has ended since a time.
func (t *trial) jobsEnded(since time.Time) bool {
	jobs, err := t.fixture.Kube.BatchV1().Jobs(t.scope()).List(t.Ctx, metav1.ListOptions{})
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

// awaitFirstState waits until the state is that of an undisturbed run, after a change was undone. It only notes annotations that
// stay different, such as a hash with the generation: they would be different after each change, for the same cause. So their
// values count as varying from then on.
func (t *trial) awaitFirstState(undone variation, most time.Duration) error {
	err := t.Eventually(most, t.asBefore)
	var different differenceError
	if !errors.As(err, &different) || !different.onlyAnnotations() {
		return err
	}
	for _, line := range different {
		path, _, _ := strings.Cut(line, " ")
		t.varying[path] = true
		t.run.annotations = append(t.annotations, undone.title()+", undone: "+line)
	}
	return nil
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

// differsAnew reports whether a sample that is created with a change reaches another state than this sample. The part of
// the sample itself with the change is not compared: a webhook may set defaults only at a creation.
func (t *trial) differsAnew(v variation) (bool, error) {
	here, err := t.observe()
	if err != nil {
		return false, err
	}
	changed, err := v.in(t.target.sample)
	if err != nil {
		return false, err
	}
	other := t
	if !t.serial() {
		if other, err = t.newTrial(t.Ctx); err != nil {
			return false, err
		}
		defer other.clean()
	} else if err := t.samples().Delete(t.Ctx, changed.GetName(), metav1.DeleteOptions{}); err != nil {
		return false, err
	} else if err := t.Eventually(20*time.Second, t.nothingLeft); err != nil {
		return true, nil
	}
	if err := other.put(changed); err != nil {
		return false, err
	}
	if err := other.await(40 * time.Second); err != nil {
		return true, nil
	}
	there, err := other.observe()
	if apierrors.IsNotFound(err) {
		return true, nil
	} else if err != nil {
		return false, err
	}
	for _, s := range []state.State{here, there} {
		maps.DeleteFunc(s, func(path, _ string) bool { return t.isPartOf(v, path) })
	}
	return len(state.Differences(here, there, t.varying)) > 0, nil
}

// isPartOf reports whether a path of a state is in the part of the sample that a change is about.
func (t *trial) isPartOf(v variation, path string) bool {
	root := t.own().String() + "." + strings.Join(v.root(), ".")
	rest, found := strings.CutPrefix(path, root)
	return found && (rest == "" || strings.ContainsAny(rest[:1], ".["))
}

// histories are kinds of which operators keep old objects on purpose.
var histories = []string{"replicasets.apps", "controllerrevisions.apps", "jobs.batch"}

// leftBehind are the objects that the sample owns besides its children of an undisturbed run. A sample of a built-in kind
// has those that the operator created, because the copies of a replicator have no owner.
func (t *trial) leftBehind() (names []string, err error) {
	owner, err := t.sample()
	if err != nil {
		return nil, err
	}
	err = t.Eventually(t.patience(), func() error {
		owned, err := t.owned(t.Ctx, owner.GetUID())
		if t.target.builtIn {
			owned, err = t.made()
		}
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
	return t.samples().Patch(t.Ctx, t.target.sample.GetName(), types.MergePatchType, patch,
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
	events, err := t.fixture.Kube.CoreV1().Events(u.GetNamespace()).List(t.Ctx, metav1.ListOptions{})
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

// newWarning is the message of an event of type Warning about the sample that came since some warnings; empty when there is
// none.
func (t *trial) newWarning(before map[string]int32) (message string, err error) {
	after, err := t.warnings()
	for _, message := range slices.Sorted(maps.Keys(after)) {
		if after[message] > before[message] {
			return shortened(firstLine(message), 200), nil
		}
	}
	return "", err
}

// reached are the places outside its own part of the sample that a change reached, or the warning that refuses the change. The first
// state comes from this trial, so that it also shows a port that the cluster chose before.
func (t *trial) reached(v variation, first state.State, warnings map[string]int32) (places []string, err error) {
	err = t.Eventually(t.untilResync(t.patience(), time.Minute), func() error {
		places = nil
		now, err := t.observeWithout(restless)
		if apierrors.IsNotFound(err) {
			places = []string{"a child that is gone"}
			return nil
		} else if err != nil {
			return err
		}
		for _, line := range state.Differences(now, first, t.varying) {
			if path, _, _ := strings.Cut(line, " "); !t.isPartOf(v, path) && path != "…" {
				places = append(places, path)
			}
		}
		if len(places) > 0 {
			return nil
		}
		message, err := t.newWarning(warnings)
		if err != nil {
			return err
		}
		if message != "" {
			places = append(places, "an event (Warning: "+message+")")
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

// followed are the paths that vary between undisturbed runs, and that followed a change and its undoing: they had their first
// value, another one when the change was there, and now the first one again. A text with the namespace that is compressed or
// hashed does so, a time and a generated password do not.
func (t *trial) followed(first, changed state.State) (places []string, err error) {
	for path, value := range changed {
		if t.varying[path] && value != first[path] {
			places = append(places, path)
		}
	}
	slices.Sort(places)
	if len(places) == 0 {
		return nil, nil
	}
	var back []string
	err = t.Eventually(t.patience(), func() error {
		now, err := t.observeWithout(restless)
		if err != nil {
			return err
		}
		back = slices.DeleteFunc(slices.Clone(places), func(path string) bool { return now[path] != first[path] })
		if len(back) == 0 {
			return errNothing
		}
		return nil
	})
	if errors.Is(err, errNothing) {
		err = nil
	}
	return back, err
}
