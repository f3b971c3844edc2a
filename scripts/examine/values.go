package examine

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/operator-workshop/scripts/examine/fixture"
)

// huge is the largest value of an integer.
const huge = int64(math.MaxInt32)

// extremes returns extreme values of the type of a field: zero, huge, empty, long, and not ASCII.
func extremes(field map[string]any, was any) []any {
	switch _, isEnum := field["enum"]; {
	case isEnum:
	case field["type"] == "integer":
		return []any{int64(0), huge}
	case field["type"] == "string" && field["format"] != "byte" && was != nil:
		return []any{"", "日本-ünï", strings.Repeat("x", 1000)}
	case field["type"] == "array" && was != nil:
		return []any{[]any{}}
	}
	return nil
}

// extremeValues sets the fields of the sample to extreme values, as far as the schema and the webhooks allow.
func extremeValues(r *run) error {
	all, names := r.target.variations(extremes)
	all = slices.DeleteFunc(all, func(v variation) bool { return v.value == nil })
	if len(all) == 0 {
		r.add("refused by the schema or a webhook", skipped("the lab knows no extreme value for the fields: %s", looked(names)))
		return nil
	}
	var allowed []variation
	err := r.check("refused by the schema or a webhook", func(t *trial) (Finding, error) {
		if err := t.serve(); err != nil {
			return Finding{}, err
		}
		for _, v := range all {
			patch, err := v.patch(v.value)
			if err != nil {
				return Finding{}, err
			}
			if _, err = t.samples().Patch(t.Ctx, t.target.sample.GetName(), types.MergePatchType, patch,
				metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}); !isClientError(err) {
				allowed = append(allowed, v)
			}
		}
		if len(allowed) == len(all) {
			return skipped("they allow each of %d extreme values", len(all)), nil
		}
		return passed("%d of %d extreme values", len(all)-len(allowed), len(all)), nil
	})
	if err != nil {
		return err
	}
	var trials []disturbance
	if v, c, ok := r.largeText(); ok {
		name := fmt.Sprintf("%s becomes too large for %s", v.name(), c)
		r.secrets.Publish(v.name())
		trials = append(trials, disturbance{name, true, func(t *trial) (f Finding, err error) {
			f, err = t.becomesTooLarge(v, c)
			f.File, f.Line = r.target.placeOf(v.path)
			return f, err
		}})
	}
	for n, v := range allowed {
		r.secrets.Publish(v.name())
		trials = append(trials, disturbance{v.title(), n < 3, func(t *trial) (f Finding, err error) {
			f, err = t.survives(v)
			f.File, f.Line = r.target.placeOf(v.path)
			return f, err
		}})
	}
	return r.each("extreme values", trials)
}

// title is the text of a variation with the beginning of a long value. Two values of a field have different titles.
func (v variation) title() string {
	return v.name() + shortened(strings.TrimPrefix(v.String(), v.name()), 30)
}

// isClientError reports whether the API server, or a webhook, found a fault in a request.
func isClientError(err error) bool {
	status := apierrors.APIStatus(nil)
	return errors.As(err, &status) && status.Status().Code >= 400 && status.Status().Code < 500
}

// refusedChange is the finding about a change of the sample that the API server did not accept.
func (t *trial) refusedChange(err error) (Finding, error) {
	switch {
	case isCallError(err):
		return failed("its webhook does not answer: %s", apiMessage(err)).with(t.operator.Process().LastLines(5, "")...), nil
	case isClientError(err):
		return passed("refused: %s", shortened(firstLine(apiMessage(err)), 200)), nil
	}
	return Finding{}, err
}

// survives sets one field to an extreme value, and then restores it. A quota limits the pods, and a policy limits the
// replicas of StatefulSets for a huge number.
func (t *trial) survives(v variation) (Finding, error) {
	if err := t.serve(); err != nil {
		return Finding{}, err
	}
	places := map[string]bool{}
	for _, c := range t.children {
		if !c.Cluster {
			places[cmp.Or(c.Namespace, t.Namespace)] = true
		}
	}
	for place := range places {
		if _, err := t.Limit(place, corev1.ResourceList{corev1.ResourcePods: resource.MustParse("30")}); err != nil {
			return Finding{}, err
		}
	}
	if v.value == huge {
		if err := t.LimitStatefulSets(); err != nil {
			return Finding{}, err
		}
	}
	mark := t.Mark()
	if _, err := t.patchSpec(v, v.value); err != nil {
		return t.refusedChange(err)
	}
	w, err := t.watch(time.Now(), mark)
	if err != nil {
		return Finding{}, err
	}
	if p := t.operator.Process(); !p.Running() {
		return notAlive(p), nil
	}
	how := "the API server accepted all its writes"
	var refused refusedError
	if errors.As(beingRefused(t.Writes(mark)), &refused) {
		message := cmp.Or(refused.last.Message, http.StatusText(refused.last.Code))
		reported, where := t.reported(func() (bool, string) { return t.reportsProblem(message) })
		if !reported {
			return failed("neither the status nor an event reports that %v", refused).with(where), nil
		}
		how = fmt.Sprintf("%v, and %s", refused, where)
	}
	if _, err := t.patchSpec(v, v.was); err != nil {
		return failed("undoing the change is refused: %v", err), nil
	}
	begin, mark := time.Now(), t.Mark()
	if err := t.awaitFirstState(v, 40*time.Second); err != nil {
		return t.notRecovered("40 s after the value was undone", mark, err), nil
	}
	if w.hot() {
		return failed("a hot loop: %v, without exponential backoff", w).with(lines(w.entries)...), nil
	}
	f := passed("%v; %s; as before %.1f s after the value was undone", w, how, time.Since(begin).Seconds())
	if p := t.operator.Process(); !t.rests(p) {
		if !p.Running() {
			return notAlive(p), nil
		}
		t.operator.Kill() // it must not end in the next trial
	}
	return f, nil
}

// notAlive is the finding about a process that an extreme value has ended.
func notAlive(p *fixture.Process) Finding {
	return failed("the operator did not stay alive: it %v%s", p.Exit(), words(p))
}

// rests reports whether a process comes to rest within 30 s: it uses less than a tenth of a processor. One of several workers may
// still be busy with a value that was undone, and use up the memory.
func (t *trial) rests(p *fixture.Process) bool {
	used, _ := fixture.CPU(p.PID())
	looked := time.Now()
	for until := t.clock.Now() + 30*time.Second; p.Running() && t.clock.Now() < until; {
		if fixture.Pause(t.Ctx, time.Second) != nil {
			return false
		}
		now, err := fixture.CPU(p.PID())
		if err == nil && now-used < time.Since(looked)/10 {
			return true
		}
		used, looked = now, time.Now()
	}
	return false
}
