package examine

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"example.com/operator-workshop/scripts/examine/fixture"
	"example.com/operator-workshop/scripts/examine/ledger"
)

// serial reports whether samples cannot exist side by side, because they share one namespace, or have none, or because
// they have children in one.
func (r *run) serial() bool { return r.target.Namespace != "" || r.target.cluster || r.hasElsewhere() }

// hasElsewhere reports whether the operator has a child in a namespace that all samples share.
func (r *run) hasElsewhere() bool {
	return slices.ContainsFunc(r.children, func(c child) bool { return c.Namespace != "" })
}

// isReached reports whether an operator of a built-in kind, such as a replicator, may have children in a namespace: NEEDS=
// or SAMPLE= creates it.
func (t *trial) isReached(namespace string) bool {
	return t.target.builtIn && namespace != t.target.home() && namespace != "" && t.isElsewhere(namespace)
}

// owns are the children that the lab did not create itself as prerequisites of the sample. An operator may change a
// prerequisite, but neither restores nor deletes it.
func (r *run) owns() []child {
	return slices.DeleteFunc(slices.Clone(r.children), r.isGiven)
}

func (r *run) isGiven(c child) bool {
	return slices.ContainsFunc(r.target.needs, func(u *unstructured.Unstructured) bool {
		gvk := u.GroupVersionKind()
		mapping, err := r.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		return err == nil && mapping.Resource.GroupResource() == c.GVR.GroupResource() && u.GetName() == c.Name &&
			c.Namespace == ""
	})
}

// findLost notes the prerequisites of the sample that the operator deleted in a trial, also if it created them again.
func (t *trial) findLost() {
	for c, uid := range t.given {
		u, err := t.at(c).Get(t.Ctx, c.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) || err == nil && u.GetUID() != uid {
			t.deletedMu.Lock()
			t.deleted[c.String()] = true
			t.deletedMu.Unlock()
		}
	}
}

// judgeGiven records whether the operator left the prerequisites of the sample in the trials since the last call.
func (r *run) judgeGiven() {
	if len(r.target.needs) == 0 {
		return
	}
	f := passed("%d objects are those of before the sample", len(r.target.needs))
	if names := slices.Sorted(maps.Keys(r.deleted)); len(names) > 0 {
		f = failed("it deleted what was there before the sample: %s", strings.Join(names, ", "))
	}
	clear(r.deleted)
	r.add(givenStays, f)
}

// givenStays is the title of the finding about the prerequisites of the sample, in each experiment.
const givenStays = "what the sample was given stays"

// findLocks looks for locks of leader elections that are not Leases: client-go once kept them in ConfigMaps and
// Endpoints.
func (t *trial) findLocks() {
	for _, resource := range []string{"configmaps", "endpoints"} {
		gvr := schema.GroupVersionResource{Version: "v1", Resource: resource}
		all, err := t.fixture.Dynamic.Resource(gvr).List(t.Ctx, metav1.ListOptions{})
		if err != nil {
			continue
		}
		for _, u := range all.Items {
			if _, ok := u.GetAnnotations()[resourcelock.LeaderElectionRecordAnnotationKey]; ok {
				t.locks[objectKey{resource, u.GetNamespace(), u.GetName()}] = true
			}
		}
	}
}

// isLock reports whether a request is about a lock of a leader election.
func (r *run) isLock(e ledger.Entry) bool {
	return r.locks[objectKey{e.FullResource(), e.Namespace, e.Name}]
}

// cleanNamespaces waits until the children outside the namespace of a sample are gone, because the next sample has the
// same children. It deletes children that stay.
func (t *trial) cleanNamespaces(ctx context.Context) {
	patience := 5 * time.Second
	if t.target.cluster { // a namespace takes seconds to disappear
		patience = 15 * time.Second
	}
	for begin, forced := t.clock.Now(), false; ctx.Err() == nil && t.nothingLeft() != nil; _ = fixture.Pause(ctx,
		50*time.Millisecond) {
		if forced = forced || t.clock.Now()-begin > patience; !forced {
			continue
		}
		for _, c := range t.owns() {
			_ = t.at(c).Delete(ctx, c.Name, metav1.DeleteOptions{})
		}
	}
	for _, c := range t.childrenOf(created(t.Changes(0))) {
		if t.isReached(c.Namespace) { // of a changed sample
			_ = t.at(c).Delete(ctx, c.Name, metav1.DeleteOptions{})
		}
	}
}

// scope is the namespace in which the operator works for the sample; empty means all of them.
func (t *trial) scope() string {
	if t.target.cluster || t.hasElsewhere() {
		return ""
	}
	return t.Namespace
}

// here is the namespace of a child without another one. The children of a cluster-scoped sample each have their own.
func (t *trial) here() string {
	if t.target.cluster {
		return ""
	}
	return t.Namespace
}

// own returns the sample as a child.
func (r *run) own() child {
	return child{GVR: r.target.gvr, Name: r.target.sample.GetName(), Cluster: r.target.cluster}
}

// settled waits until the prerequisites of the sample are in steady state: a new Deployment gets its pods first, so
// that a later conflict is the operator's own.
func (t *trial) settled() error {
	last, since := map[string]string{}, time.Now()
	err := t.Eventually(5*time.Second, func() error {
		now := map[string]string{}
		for _, u := range t.target.needs {
			mapping, err := t.mapper.RESTMapping(u.GroupVersionKind().GroupKind(), u.GroupVersionKind().Version)
			if err != nil {
				return err
			}
			c := child{GVR: mapping.Resource, Name: u.GetName(), Namespace: t.place(u.GetNamespace()),
				Cluster: mapping.Scope.Name() == meta.RESTScopeNameRoot}
			if c.Namespace == t.Namespace {
				c.Namespace = "" // the name is the same in each trial
			}
			live, err := t.at(c).Get(t.Ctx, c.Name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			now[c.String()], t.given[c] = live.GetResourceVersion(), live.GetUID()
		}
		if !maps.Equal(now, last) {
			last, since = now, time.Now()
		}
		if time.Since(since) < 400*time.Millisecond {
			return errRestless
		}
		return nil
	})
	if errors.Is(err, errRestless) {
		return nil // it never reaches steady state, and the experiments begin
	}
	return err
}
