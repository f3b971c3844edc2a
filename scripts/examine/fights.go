package examine

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
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
	if !t.hasStatus() {
		return skipped("its samples have no status"), nil
	}
	mark, begin := t.Mark(), time.Now()
	_, err := t.patchStatus(nil)
	if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) {
		return skipped("the API server lets no client remove the status: %s", firstLine(apiMessage(err))), nil
	} else if err != nil {
		return Finding{}, err
	}
	err = t.Eventually(t.patience(), t.statusIsBack)
	switch {
	case err == nil:
		return passed("the status was back after %.1f s, with %d writes", time.Since(begin).Seconds(),
			len(t.Writes(mark))), nil
	case !errors.As(err, new(differenceError)):
		return Finding{}, err
	case t.awaitPeriod(begin, t.statusIsBack):
		return late("the status was back only after %.0f s", time.Since(begin).Seconds()), nil
	}
	how := "removed"
	if u, readErr := t.sample(); readErr == nil && u.Object["status"] != nil {
		how = "incomplete"
	}
	return failed("the status stayed %s for %.0f s", how, time.Since(begin).Seconds()).with(strings.Split(err.Error(), "\n")...).
		with(lines(t.Writes(mark))...), nil
}

// patchStatus changes the status of the sample, as another client does. In a dry run, it only looks whether it could.
func (t *trial) patchStatus(status any, dryRun ...string) (*unstructured.Unstructured, error) {
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return nil, err
	}
	var subresources []string
	if !t.target.statusless {
		subresources = []string{"status"}
	}
	return t.samples().Patch(t.Ctx, t.target.sample.GetName(), types.MergePatchType, patch,
		metav1.PatchOptions{FieldManager: somebody, DryRun: dryRun}, subresources...)
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

// A fight is a change that another client makes again and again, as often as the operator takes it back.
type fight struct {
	what   string // what the other client does
	times  int
	pause  time.Duration // after each change
	change func() error
	// answers are the writes of the operator that may take a change back.
	answers ledger.Match
}

// fought judges by the number of its answers whether the operator ever gives way.
func (t *trial) fought(f fight) (Finding, error) {
	mark, begin := t.Mark(), time.Now()
	for range f.times {
		if err := errors.Join(f.change(), fixture.Pause(t.Ctx, f.pause)); err != nil {
			return Finding{}, err
		}
	}
	writes, took := t.fixture.Ledger.Entries(t.Mine(mark, wire.Writes...), f.answers), time.Since(begin)
	what := fmt.Sprintf("%s %d times in %.0f s, and the operator wrote %d times", f.what, f.times, took.Seconds(), len(writes))
	switch {
	case len(writes) > f.times/2 && took > 2*time.Duration(f.times)*f.pause: // there was time for many slow corrections
		return skipped("%s: the machine is too busy for a fight", what), nil
	case len(writes) > f.times/2:
		return failed("%s: nothing slows it down", what).with(lines(writes)...), nil
	}
	return passed("%s", what), nil
}

// fights lets other clients fight with the operator, about the status only when it restores a removed status.
func (r *run) fights() error {
	var all []disturbance
	if r.lastVerdict() == Passed {
		all = append(all, disturbance{"a client that falsifies the status has no endless fight", false, (*trial).falsified})
	}
	var report Finding
	c, ok := r.scaled()
	if ok {
		all = append(all, disturbance{fmt.Sprintf("an autoscaler on %s has no endless fight", c), false,
			func(t *trial) (f Finding, err error) {
				f, report, err = t.isScaled(c)
				return f, err
			}})
	}
	err := r.each("fights", all)
	if err == nil && report.Verdict != "" {
		r.add(fmt.Sprintf("a fight with an autoscaler on %s is reported", c), report)
	}
	return err
}

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

// isScaled scales a child again and again, as an autoscaler does that wants another number of replicas than the operator. The
// second finding is about the report of a fight, if it has an end.
func (t *trial) isScaled(c child) (endless, report Finding, err error) {
	if err := t.idle(); err != nil {
		return endless, report, err
	}
	u, err := t.at(c).Get(t.Ctx, c.Name, metav1.GetOptions{})
	if err != nil {
		return endless, report, err
	}
	at := path{{field: "spec"}, {field: "replicas"}}
	_, was, _ := at.find(u.Object)
	replicas, _, _ := unstructured.NestedInt64(u.Object, "spec", "replicas")
	patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas+1)
	reported, where := false, ""
	look := func() {
		if !reported {
			reported, where = t.reportsFight()
		}
	}
	mark, answers := t.Mark(), ledger.Match{Resources: []string{ledgerName(c)}}
	endless, err = t.fought(fight{"an autoscaler changed the replicas", 20, 500 * time.Millisecond, func() error {
		look()
		_, err := t.at(c).Patch(t.Ctx, c.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "autoscaler"}, "scale")
		return err
	}, answers})
	if err != nil || endless.Verdict != Passed {
		return endless, report, err
	}
	writes := t.fixture.Ledger.Entries(t.Mine(mark, wire.Writes...), answers)
	goesOn := len(writes) > 1 && t.Eventually(afterFight, func() error {
		look()
		if reported {
			return nil
		}
		return t.has(c, at, was)
	}) == nil
	if err := t.Ctx.Err(); err != nil {
		return endless, Finding{}, err
	}
	switch {
	case reported:
		report = passed("%s", where)
	case !goesOn:
		report = passed("it restored the replicas %d times, and then left them to the autoscaler", len(writes))
	default:
		report = failed("it restored the replicas %d times in the fight, and after it, and reports no other client", len(writes)).
			with(where).with(lines(writes)...)
	}
	return endless, report, nil
}

// fightWord matches the words of a status or an event that reports another client, or a difference from the desired state.
var fightWord = regexp.MustCompile(`(?i)autoscaler|another|other client|manager|conflict|contend|fight|drift|overwr|revert|restor|` +
	errorWord.String()[len("(?i)"):])

// reportsFight looks in the sample's status, and in events about the sample, for a report about another client.
func (t *trial) reportsFight() (found bool, where string) {
	u, err := t.sample()
	if err != nil {
		return false, err.Error()
	}
	if line := t.newValue(u, fightWord); line != "" {
		return true, "the status reports it (" + line + ")"
	}
	if message, err := t.newWarning(nil); err == nil && message != "" {
		return true, "an event reports it (Warning: " + message + ")"
	}
	return false, "the status is " + text(u.Object["status"])
}
