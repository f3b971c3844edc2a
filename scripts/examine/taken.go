package examine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"example.com/operator-workshop/scripts/examine/ledger"
	"example.com/operator-workshop/scripts/examine/wire"
)

// ownership creates, before the sample, an object with the name of a child, as another user or program might do.
func ownership(r *run) error {
	var all []disturbance
	var outside []string
	seen := map[schema.GroupVersionResource]bool{}
	for _, c := range byKind(r.owns()) {
		if c.Cluster || c.Namespace != "" && r.target.cluster {
			outside = append(outside, c.String())
			continue
		} else if seen[c.GVR] || r.bodyOf(c) == nil {
			continue
		}
		seen[c.GVR] = true
		for _, owner := range []string{"another owner", "no owner"} {
			all = append(all, disturbance{fmt.Sprintf("an object with the name of %s that has %s stays", c, owner),
				len(seen) == 1, func(t *trial) (Finding, error) { return t.taken(c, owner == "another owner") }})
		}
	}
	if len(all) == 0 {
		r.add("an object with the name of a child stays", skipped("the lab has seen no creation of a child in the namespace of "+
			"the sample"))
	}
	if len(outside) > 0 {
		f := skipped("the lab does not take the name of %s", strings.Join(outside, ", "))
		f.Left, f.Of = len(outside), len(r.owns())
		r.add(notTried+"names of children outside the namespace of the sample", f)
	}
	return r.each("names that are taken", all)
}

// bodyOf returns the object that the operator sent to create a child in an undisturbed run, or nil if the lab has none.
func (r *run) bodyOf(c child) map[string]any {
	r.creationsMu.Lock()
	defer r.creationsMu.Unlock()
	for _, s := range r.creations {
		if s.what == ledgerName(c) && s.name == c.Name {
			return s.object
		}
	}
	return nil
}

// taken creates the sample while an object that the operator does not own has the name of a child.
func (t *trial) taken(c child, owned bool) (Finding, error) {
	uid, remove, err := t.takeName(c, owned)
	defer remove()
	if err != nil {
		return skipped("the lab cannot create such an object: %v", err), nil
	}
	mark := t.Mark()
	if err := t.create(); err != nil {
		return Finding{}, err
	}
	w, err := t.watch(time.Now(), mark)
	if err != nil {
		return Finding{}, err
	}
	reported, where := t.reported(func() (bool, string) { return t.reportsProblem("already") })
	now, err := t.at(c).Get(t.Ctx, c.Name, metav1.GetOptions{})
	switch touched := t.fixture.Ledger.Entries(t.Mine(mark), ledger.Changes,
		ledger.Match{Resources: []string{ledgerName(c)}, Name: c.Name}); {
	case err != nil && !apierrors.IsNotFound(err):
		return Finding{}, err
	case err != nil || now.GetUID() != uid:
		return deletedBy(t.fixture.Ledger.Entries(t.Mine(mark), ledger.Changes, ledger.Match{
			Resources: []string{ledgerName(c)}}), c.Name), nil
	case len(touched) > 0:
		return failed("the operator changed it; its owner references are now %s", text(now.GetOwnerReferences())).
			with(lines(touched)...), nil
	}
	if instead, err := t.readyWithout(c); err != nil {
		return Finding{}, err
	} else if len(instead) > 0 {
		return w.judge("it stayed", "the sample is ready with "+strings.Join(instead, ", ")+" instead", true, t.missing(c)), nil
	}
	remove()
	begin, mark := time.Now(), t.Mark()
	if err := t.Eventually(time.Minute, t.asUndisturbed); err != nil {
		return t.notRecovered("1 minute after its name was free", mark, err), nil
	}
	back := fmt.Sprintf("as undisturbed %.1f s after its name was free", time.Since(begin).Seconds())
	switch {
	case w.hot():
		return failed("a hot loop: %v, without exponential backoff; %s", w, back).with(lines(w.entries)...), nil
	case !reported:
		return failed("it stayed; neither the status nor an event reports it; %s", back).with(where), nil
	}
	return passed("it stayed; %v; %s; %s", w, where, back), nil
}

// readyWithout returns the objects with which the sample gets ready instead of a child whose name is taken: an operator may
// choose another name. There are none when the sample does not get ready.
func (t *trial) readyWithout(c child) (instead []string, err error) {
	owned, err := t.ownedNow()
	if err != nil {
		return nil, err
	}
	for _, o := range owned {
		if ledgerName(o) == ledgerName(c) && !slices.Contains(t.children, o) {
			instead = append(instead, o.String())
		}
	}
	if len(instead) == 0 || t.await(20*time.Second) != nil {
		return nil, nil
	}
	return instead, nil
}

// deletedBy judges by the operator's changes of a resource whether the operator deleted the object with a name. A
// request that deletes a collection has no name.
func deletedBy(changes []ledger.Entry, name string) Finding {
	touched := slices.DeleteFunc(changes, func(e ledger.Entry) bool {
		return e.Name != name && e.Verb != wire.DeleteCollection
	})
	if slices.ContainsFunc(touched, func(e ledger.Entry) bool {
		return e.Subresource == "" && (e.Verb == wire.Delete || e.Verb == wire.DeleteCollection)
	}) {
		return failed("the operator deleted it").with(lines(touched)...)
	}
	return skipped("something else than the operator deleted it").with(lines(touched)...)
}

// takeName creates an object with the name of a child, with another value in one field, and with another owner or none.
// The function remove deletes the objects that takeName has created.
func (t *trial) takeName(c child, owned bool) (uid types.UID, remove func(), err error) {
	const owner = "examine-owner"
	namespace := cmp.Or(c.Namespace, t.Namespace)
	owners := t.fixture.Kube.CoreV1().ConfigMaps(namespace)
	remove = func() {
		ctx := context.WithoutCancel(t.Ctx)
		_ = t.at(c).Delete(ctx, c.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
		_ = owners.Delete(ctx, owner, metav1.DeleteOptions{})
	}
	u := (&unstructured.Unstructured{Object: t.bodyOf(c)}).DeepCopy()
	kind, err := t.mapper.KindFor(c.GVR)
	if err != nil {
		return uid, remove, err
	}
	u.SetGroupVersionKind(kind)
	u.SetNamespace(namespace)
	for _, field := range []string{"ownerReferences", "finalizers", "resourceVersion", "uid"} {
		unstructured.RemoveNestedField(u.Object, "metadata", field)
	}
	if t.target.builtIn { // a replicator knows its copies by them
		u.SetAnnotations(nil)
		u.SetLabels(nil)
	}
	if owned {
		o, err := owners.Create(t.Ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: owner}}, metav1.CreateOptions{FieldManager: somebody})
		if err != nil {
			return uid, remove, err
		}
		u.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(o,
			corev1.SchemeGroupVersion.WithKind("ConfigMap"))})
	}
	u, err = t.at(c).Create(t.Ctx, u, metav1.CreateOptions{FieldManager: somebody})
	if err != nil {
		return uid, remove, errors.New(apiMessage(err))
	}
	for _, p := range t.fields[c] {
		if p[0].field == "metadata" {
			continue
		}
		if pointer, _, err := t.disturb(c, p); err != nil || pointer != "" {
			return u.GetUID(), remove, err
		}
	}
	return u.GetUID(), remove, nil
}

// reportsProblem looks for a report in the sample's status, and in events about the sample: for a part of the message, or
// for an error. A sample without a status in the undisturbed runs need not report anything.
func (t *trial) reportsProblem(message string) (found bool, where string) {
	if found, where = t.reports(message); found {
		return found, where
	}
	u, err := t.sample()
	if err != nil {
		return false, err.Error()
	}
	reportsReady := u.Object["status"] != nil && (!t.target.builtIn || t.writesStatus)
	if err := isReady(t.target.Ready, u); err != nil && reportsReady {
		return true, "the status reports only that it is not ready: " + shortened(err.Error(), 200)
	}
	if t.hasStatus() {
		return false, where
	}
	return true, "its samples have no status"
}

// hasStatus reports whether a sample had a status in the undisturbed runs.
func (t *trial) hasStatus() bool {
	for path := range t.state {
		if strings.HasPrefix(path, t.own().String()+".status.") {
			return true
		}
	}
	return false
}
