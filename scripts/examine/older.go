package examine

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"example.com/operator-workshop/scripts/examine/ledger"
	"example.com/operator-workshop/scripts/examine/wire"
)

// A fixedField is a field that no client can change in an object of some resources.
type fixedField struct {
	resources []string
	name      string
	// change gives the field another value, in an object that the operator sent, and reports whether it has one. It gets
	// the fields that the operator sets.
	change func(u *unstructured.Unstructured, set []path) bool
	// silent means that an operator need not look at the field of an object that exists.
	silent bool
}

var fixedFields = []fixedField{
	{[]string{"deployments.apps", "statefulsets.apps", "daemonsets.apps"}, "another selector", otherSelector, false},
	{[]string{"services"}, "another kind of clusterIP", otherClusterIP, true},
	{[]string{"jobs.batch"}, "another template", otherTemplate, true},
	{[]string{"configmaps", "secrets"}, "other, immutable data", otherData, true},
}

// otherSelector changes the first label of the selector, and of the pods.
func otherSelector(u *unstructured.Unstructured, _ []path) bool {
	labels, _, _ := unstructured.NestedStringMap(u.Object, "spec", "selector", "matchLabels")
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		return unstructured.SetNestedField(u.Object, "older", "spec", "selector", "matchLabels", key) == nil &&
			unstructured.SetNestedField(u.Object, "older", "spec", "template", "metadata", "labels", key) == nil
	}
	return false
}

// otherClusterIP makes a Service with an address of one without an address, and the reverse.
func otherClusterIP(u *unstructured.Unstructured, _ []path) bool {
	spec, _, _ := unstructured.NestedMap(u.Object, "spec")
	switch {
	case spec["clusterIP"] == corev1.ClusterIPNone:
		delete(spec, "clusterIP")
	case spec["type"] == string(corev1.ServiceTypeNodePort), spec["type"] == string(corev1.ServiceTypeLoadBalancer):
		spec = map[string]any{"clusterIP": corev1.ClusterIPNone, "selector": spec["selector"]}
	default:
		return false // a client can change its type
	}
	u.Object["spec"] = spec
	return true
}

// otherTemplate changes the images of a Job.
func otherTemplate(u *unstructured.Unstructured, _ []path) bool {
	at := []string{"spec", "template", "spec", "containers"}
	containers, _, _ := unstructured.NestedSlice(u.Object, at...)
	for _, c := range containers {
		if c, ok := c.(map[string]any); ok {
			c["image"] = "example.com/older"
		}
	}
	return len(containers) > 0 && unstructured.SetNestedSlice(u.Object, containers, at...) == nil
}

// otherData changes a value that the operator sets, and makes the object immutable.
func otherData(u *unstructured.Unstructured, set []path) bool {
	for _, p := range set {
		if len(p) != 2 || p[0].field != "data" {
			continue
		}
		unstructured.RemoveNestedField(u.Object, "stringData", p[1].field)
		return unstructured.SetNestedField(u.Object, "b2xk", "data", p[1].field) == nil && // base64, for a Secret
			unstructured.SetNestedField(u.Object, true, "immutable") == nil
	}
	return false
}

// olderChildren starts the operator over children as an earlier version of it could have made them.
func olderChildren(r *run) error {
	var all []disturbance
	for _, f := range fixedFields {
		for _, resource := range f.resources {
			for _, c := range r.owns() {
				u := &unstructured.Unstructured{Object: r.bodyOf(c)}
				if ledgerName(c) != resource || u.Object == nil {
					continue
				}
				if u = u.DeepCopy(); f.change(u, r.fields[c]) {
					all = append(all, disturbance{fmt.Sprintf("an older %s with %s is made again, or reported", c, f.name),
						len(all) == 0, func(t *trial) (Finding, error) { return t.meetsOlder(c, u, f.silent) }})
					break // one child of each resource
				}
			}
		}
	}
	if len(all) == 0 {
		r.add("an older child is made again, or reported", skipped("no client can change a field that it sets"))
		return nil
	}
	if err := r.findRestored(); err != nil {
		return err
	}
	return r.each("older children", all)
}

// meetsOlder replaces a child by an older one while the operator does not run. It also deletes another child, which the
// operator must create whatever it does about the older one.
func (t *trial) meetsOlder(c child, older *unstructured.Unstructured, silent bool) (Finding, error) {
	if err := t.serve(); err != nil {
		return Finding{}, err
	}
	t.operator.Kill()
	uid, err := t.replace(c, older)
	if err != nil {
		return skipped("the lab cannot create such an object: %s", apiMessage(err)), nil
	}
	if !t.unrestored && t.restored.GVR != c.GVR {
		if err := t.at(t.restored).Delete(t.Ctx, t.restored.Name, metav1.DeleteOptions{}); err != nil {
			return Finding{}, err
		}
	}
	mark := t.Mark()
	if err := t.operator.start(t.Ctx); err != nil {
		return Finding{}, err
	}
	w, err := t.watch(time.Now(), mark)
	if err != nil {
		return Finding{}, err
	}
	_ = t.Eventually(t.untilResync(t.patience(), time.Minute), t.asUndisturbed)
	now, err := t.at(c).Get(t.Ctx, c.Name, metav1.GetOptions{})
	switch {
	case err != nil && !apierrors.IsNotFound(err):
		return Finding{}, err
	case err != nil || now.GetUID() != uid || t.asUndisturbed() == nil:
		return t.olderIsOver(w, mark)
	}
	message := "immutable" // of an operator that looks, and does not try
	var refused refusedError
	tried := errors.As(beingRefused(t.fixture.Ledger.Entries(t.Mine(mark, wire.Writes...),
		ledger.Match{Resources: []string{ledgerName(c)}})), &refused)
	if tried {
		message = refused.last.Message
	}
	if silent && !tried {
		return skipped("it does not try to change the object: whether it restores its fields, the experiment drift shows"), nil
	}
	reported, where, missing := t.reacts(c, func() (bool, string) { return t.reportsRefusal(message) })
	if err := t.at(c).Delete(t.Ctx, c.Name, metav1.DeleteOptions{}); err != nil {
		return Finding{}, err
	}
	begin, mark := time.Now(), t.Mark()
	if err := t.Eventually(time.Minute, t.asUndisturbed); err != nil {
		return t.notRecovered("1 minute after a user deleted the older object", mark, err), nil
	}
	back := fmt.Sprintf("as undisturbed %.1f s after a user deleted the older object", time.Since(begin).Seconds())
	return w.judge(where, back, reported, missing), nil
}

// olderIsOver judges an operator that replaced or changed the older object.
func (t *trial) olderIsOver(w watched, mark int) (Finding, error) {
	if err := t.Eventually(time.Minute, t.asUndisturbed); err != nil {
		return t.notRecovered("1 minute after it replaced the older object", mark, err), nil
	}
	if w.hot() {
		return failed("a hot loop: %v, without exponential backoff", w).with(lines(w.entries)...), nil
	}
	return passed("as undisturbed with %d writes", len(t.Writes(mark))), nil
}

// replace deletes a child, and creates an object with its name and its owner. Annotations may say what the operator applied
// last, and it has not applied this object.
func (t *trial) replace(c child, by *unstructured.Unstructured) (uid types.UID, err error) {
	was, err := t.at(c).Get(t.Ctx, c.Name, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	if len(was.GetOwnerReferences()) == 0 {
		return "", errors.New("the child has no owner reference")
	}
	u := by.DeepCopy()
	u.Object["metadata"] = map[string]any{}
	u.SetGroupVersionKind(was.GroupVersionKind())
	u.SetNamespace(was.GetNamespace())
	u.SetName(c.Name)
	u.SetLabels(by.GetLabels())
	u.SetOwnerReferences(was.GetOwnerReferences())
	if err := t.at(c).Delete(t.Ctx, c.Name, metav1.DeleteOptions{}); err != nil {
		return "", err
	}
	var now *unstructured.Unstructured
	_ = t.Eventually(20*time.Second, func() error {
		if now, err = t.at(c).Create(t.Ctx, u, metav1.CreateOptions{FieldManager: somebody}); apierrors.IsAlreadyExists(err) {
			return err
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	return now.GetUID(), nil
}
