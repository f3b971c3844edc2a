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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"example.com/operator-workshop/scripts/examine/state"
)

// addedName is the name of each addition.
const addedName = "examine-addition"

// An addition is something that another client adds to a child, as an injector does: a container of a pod template, or a
// label of a child without a pod template that may change.
type addition struct {
	child     child
	container bool
}

func (a addition) String() string {
	if a.container {
		return "a container that another client added to " + a.child.String()
	}
	return "a label that another client added to " + a.child.String()
}

// additionTo chooses the addition to one of the children that the operator changes.
func (r *run) additionTo() (a addition, ok bool) {
	for _, c := range r.owns() {
		template := ledgerName(c) != "jobs.batch" && slices.ContainsFunc(r.fields[c], func(p path) bool {
			return strings.HasPrefix(p.String(), ".spec.template.spec.containers")
		})
		if len(byUse(r.fields[c])) > 0 && !c.Cluster && (!ok || template && !a.container) {
			a, ok = addition{c, template}, true
		}
	}
	return a, ok
}

// patch adds the addition.
func (a addition) patch() ([]byte, types.PatchType) {
	if !a.container {
		return fmt.Appendf(nil, `{"metadata":{"labels":{%q:"yes"}}}`, addedName), types.MergePatchType
	}
	data, _ := json.Marshal([]any{map[string]any{"op": "add", "path": "/spec/template/spec/containers/-",
		"value": map[string]any{"name": addedName, "image": "example.com/proxy:1"}}})
	return data, types.JSONPatchType
}

// isMissing is a CEL expression, which is true for an object without the addition.
func (a addition) isMissing() string {
	if a.container {
		return fmt.Sprintf("!object.spec.template.spec.containers.exists(c, c.name == %q)", addedName)
	}
	return fmt.Sprintf("!has(object.metadata.labels) || !(%q in object.metadata.labels)", addedName)
}

// isIn reports whether an object has the addition.
func (a addition) isIn(u *unstructured.Unstructured) bool {
	if !a.container {
		return u.GetLabels()[addedName] != ""
	}
	all, _, _ := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
	return slices.ContainsFunc(all, func(c any) bool { return element{keys: map[string]any{"name": addedName}}.means(c) })
}

// additionRefused is the trial in which a policy refuses an addition.
func (r *run) additionRefused() disturbance {
	a, ok := r.additionTo()
	if !ok {
		return disturbance{"a policy refuses what another client added", false, func(*trial) (Finding, error) {
			return skipped("it sets no field of a child in a namespace that the lab can change"), nil
		}}
	}
	return disturbance{fmt.Sprintf("a policy refuses %s", a), false, func(t *trial) (Finding, error) { return t.refusesAddition(a) }}
}

// refusesAddition makes a policy refuse the operator's writes of a child because of an addition, and then changes the child.
func (t *trial) refusesAddition(a addition) (Finding, error) {
	if err := t.idle(); err != nil {
		return Finding{}, err
	}
	patch, kind := a.patch()
	if _, err := t.at(a.child).Patch(t.Ctx, a.child.Name, kind, patch, metav1.PatchOptions{FieldManager: somebody}); err != nil {
		return skipped("the API server refuses %s: %s", a, apiMessage(err)), nil
	}
	if err := t.Eventually(20*time.Second, t.asUndisturbedWithAddition); err != nil {
		return skipped("with %s, and without a policy, the state is not that of an undisturbed run: %v", a, err), nil
	}
	if err := t.quiet(restFor); err != nil && !errors.Is(err, errRestless) {
		return Finding{}, err
	}
	if stays, err := t.stays(a); err != nil || !stays {
		return skipped("the operator removes %s also without a policy", a), err
	}
	allow, err := t.Forbid(t.policy(a.child),
		fmt.Sprintf("request.userInfo.username != %q || %s", t.operator.user.Identity, a.isMissing()), refusal)
	if err != nil {
		return Finding{}, err
	}
	mark, changed := t.Mark(), ""
	for _, p := range byUse(t.fields[a.child]) {
		if changed, _, err = t.disturb(a.child, p); err != nil || changed != "" {
			break
		}
	}
	if err != nil || changed == "" {
		return skipped("the API server lets no client change a field of %s", a.child), err
	}
	f, _, err := t.refusedUntil(a.child, mark, allow, refusal, t.asUndisturbedWithAddition)
	if err != nil {
		return f, err
	}
	if stays, err := t.stays(a); err != nil || !stays {
		return failed("the operator removed %s", a).with(lines(t.Writes(mark))...), err
	}
	return f, nil
}

// stays reports whether a child has the addition.
func (t *trial) stays(a addition) (bool, error) {
	u, err := t.at(a.child).Get(t.Ctx, a.child.Name, metav1.GetOptions{})
	return err == nil && a.isIn(u), err
}

// templateHash is the end of a ReplicaSet's name: another pod template gives it another hash.
var templateHash = regexp.MustCompile(`-[bcdfghjklmnpqrstvwxz2456789]{8,10}\b`)

// maskHashes makes texts equal that differ only in the name of a ReplicaSet.
func maskHashes(s state.State) {
	for path, value := range s {
		s[path] = templateHash.ReplaceAllString(value, "-HASH")
	}
}

// asUndisturbedWithAddition returns nil when the state is that of an undisturbed run, with the addition or without it.
func (t *trial) asUndisturbedWithAddition() error {
	got, err := t.observe()
	if err != nil {
		return err
	}
	maps.DeleteFunc(got, func(path, _ string) bool { return strings.Contains(path, addedName) })
	want := maps.Clone(t.state)
	maskHashes(got)
	maskHashes(want)
	return goal{want, t.varying}.isReached(got)
}
