package examine

import (
	"cmp"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"example.com/operator-workshop/scripts/examine/ledger"
)

// afterFight is how long the status may stay false after a fight: an operator may correct it ever more rarely.
const afterFight = 40 * time.Second

// falsified lets another client write a false value into the status again and again, ten times in a second.
func (t *trial) falsified() (Finding, error) {
	if err := t.idle(); err != nil {
		return Finding{}, err
	}
	field, status, err := t.falseStatus()
	if err != nil {
		return Finding{}, err
	}
	if field == "" {
		return skipped("the API server lets no client falsify a condition or a simple value of the status"), nil
	}
	f, err := t.fought(fight{"another client falsified " + field, 50, 100 * time.Millisecond, func() error {
		if _, err := t.patchStatus(status); !apierrors.IsConflict(err) {
			return err
		}
		return nil
	}, ledger.Match{}})
	if err != nil {
		return Finding{}, err
	}
	if err := t.Eventually(afterFight, t.statusIsBack); err != nil {
		return failed("%v after another client falsified %s for the last time, the status is still false", afterFight, field).
			with(failedBy(err).Evidence...).with(f.What), nil
	}
	return f, nil
}

// falseStatus returns the name of a value in the status, and the part of the status in which this value is false: the
// condition of readiness if there is one, else another condition, a number, or a text. All undisturbed runs had the true value.
func (t *trial) falseStatus() (field string, part map[string]any, err error) {
	u, err := t.sample()
	if err != nil {
		return "", nil, err
	}
	status, _ := u.Object["status"].(map[string]any)
	for _, l := range append(t.falseConditions(u), falseValues(status)...) {
		if _, equal := t.state[t.own().String()+".status."+l.field]; !equal {
			continue
		}
		now, err := t.patchStatus(l.part, metav1.DryRunAll)
		if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) {
			continue
		} else if err != nil {
			return "", nil, err
		}
		if text(now.Object["status"]) != text(status) {
			return l.field, l.part, nil
		}
	}
	return "", nil, nil
}

// A falsehood is a part of a status in which one field is false.
type falsehood struct {
	field string
	part  map[string]any
}

// falseConditions has each condition the other way round, that of readiness first.
func (t *trial) falseConditions(u *unstructured.Unstructured) (all []falsehood) {
	opposite := map[string]string{"True": "False", "False": "True"}
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	ready := readyCondition(t.target.Ready, u)
	for n := range conditions {
		part := runtime.DeepCopyJSONValue(conditions).([]any)
		c, _ := part[n].(map[string]any)
		name, _ := c["type"].(string)
		status, _ := c["status"].(string)
		if opposite[status] == "" {
			continue
		}
		c["status"] = opposite[status]
		one := falsehood{"conditions[" + name + "].status", map[string]any{"conditions": part}}
		if ready != nil && ready["type"] == name {
			all = slices.Insert(all, 0, one)
		} else {
			all = append(all, one)
		}
	}
	return all
}

// falseValues has each simple value of a status with other values, numbers before texts.
func falseValues(status map[string]any) (all []falsehood) {
	isText := func(name string) int {
		if _, ok := status[name].(string); ok {
			return 1
		}
		return 0
	}
	for _, name := range slices.SortedFunc(maps.Keys(status), func(a, b string) int {
		return cmp.Or(isText(a)-isText(b), cmp.Compare(a, b))
	}) {
		for _, value := range others(status[name]) {
			all = append(all, falsehood{name, map[string]any{name: value}})
		}
	}
	return all
}
