package examine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/operator-workshop/scripts/examine/fixture"
	"example.com/operator-workshop/scripts/examine/ledger"
)

// deletion removes the sample in each way.
func deletion(r *run) error {
	if err := r.findRestored(); err != nil {
		return err
	}
	if err := r.check("deleted, it leaves nothing; created again, it works", (*trial).deleteAndCreate); err != nil {
		return err
	}
	if len(r.outside) > 0 {
		title := "a sample with the same name in another namespace takes nothing away"
		if err := r.check(title, (*trial).sharesNothing); err != nil {
			return err
		}
	}
	ways := slices.Sorted(maps.Keys(fixture.Propagations))
	if r.target.Fast {
		ways = []string{"foreground"}
	}
	err := r.judge("being deleted, it gets no new children", func() (all Finding, err error) {
		for n, way := range ways {
			f, err := r.try(func(t *trial) (Finding, error) { return t.createsNothing(fixture.Propagations[way]) })
			if errors.Is(err, errOver) && all.Verdict == Failed {
				all.Left, all.Of = len(ways)-n, len(ways)
				return all, nil
			}
			if err != nil {
				return f, err
			}
			if f.Verdict == Failed {
				r.operator.Kill()
			}
			f.What = way + ": " + f.What
			all = all.and(f)
		}
		return all, nil
	})
	r.leftOut("ways of a deletion", len(fixture.Propagations)-len(ways), len(fixture.Propagations))
	if err != nil || len(r.owns()) == 0 || r.target.builtIn {
		return err
	}
	if r.target.Fast {
		r.leftOut("deletions that keep the children, seen late", 1, 1)
		return nil
	}
	return r.check("children that a deletion keeps stay, though the operator sees the deletion late", (*trial).keepsOrphans)
}

// createsNothing deletes the sample while a finalizer keeps it, as finalizers of other programs do, and meanwhile
// deletes one of its children. An operator that ignores the deletion timestamp recreates the child, against the
// garbage collector.
func (t *trial) createsNothing(how metav1.DeletionPropagation) (Finding, error) {
	if len(t.owns()) == 0 {
		return skipped("the operator writes no other object that is its own"), nil
	}
	if err := t.serve(); err != nil {
		return Finding{}, err
	}
	release, err := fixture.Hold(t.Ctx, t.samples(), t.target.sample.GetName())
	defer func() { _ = release(context.WithoutCancel(t.Ctx)) }() // clean removes the leftovers
	if err != nil {
		return Finding{}, err
	}
	// A reconcile that began before the deletion may end after it, and creates what it still wants.
	if err := t.quiet(time.Second); err != nil && !errors.Is(err, errRestless) {
		return Finding{}, err
	}
	err = t.samples().Delete(t.Ctx, t.target.sample.GetName(), metav1.DeleteOptions{PropagationPolicy: &how})
	if err != nil {
		return Finding{}, err
	}
	if err := fixture.Pause(t.Ctx, fixture.DeletionObserved); err != nil {
		return Finding{}, err
	}
	mark, c := t.Mark(), t.restored
	err = t.at(c).Delete(t.Ctx, c.Name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) { // the garbage collector can be faster
		return Finding{}, err
	}
	window := t.untilResync(2*time.Second, 15*time.Second)
	if err := fixture.Pause(t.Ctx, window); err != nil {
		return Finding{}, err
	}
	creates := slices.DeleteFunc(created(t.Writes(mark)), func(e ledger.Entry) bool { return !t.isOwned(e) })
	if len(creates) > 0 {
		end := "the garbage collector deleted them"
		if err := t.collected(creates, release); err != nil {
			end = err.Error()
		}
		return failed("%d creates in %v for a sample that has a deletion timestamp; %s", len(creates), window, end).
			with(lines(creates)...), nil
	}
	return passed("nothing was created in %v after %s was gone", window, c), nil
}

// created returns those writes that created an object. The API server answers a create of an existing object with
// AlreadyExists: with the policy Orphan, the children still exist.
func created(writes []ledger.Entry) []ledger.Entry {
	return slices.DeleteFunc(writes, func(e ledger.Entry) bool {
		return !e.Creates() || !slices.Contains(e.Served, http.StatusCreated)
	})
}

// collected lets the sample go, and returns nil when the objects that were created meanwhile are gone, too. On a busy
// machine the garbage collector needs longer: an object stays only when the collector has deleted one that came later.
func (t *trial) collected(creates []ledger.Entry, release func(context.Context) error) error {
	if err := release(t.Ctx); err != nil {
		return err
	}
	gone := func() error {
		if u, err := t.sample(); err == nil {
			return fmt.Errorf("the sample is left, held by the finalizers %q", u.GetFinalizers())
		}
		for _, c := range t.childrenOf(creates) {
			if _, err := t.at(c).Get(t.Ctx, c.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				return fmt.Errorf("%s stays without its sample", c)
			}
		}
		return nil
	}
	if err := t.Eventually(20*time.Second, gone); err == nil {
		return nil
	}
	if err := t.collectorWorks(); err != nil {
		return err
	}
	return t.Eventually(5*time.Second, gone)
}

// collectorWorks returns when the garbage collector has deleted an object whose owner goes now.
func (t *trial) collectorWorks() error {
	objects := t.fixture.Kube.CoreV1().ConfigMaps(metav1.NamespaceDefault)
	owner, err := objects.Create(t.Ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "examine-owner-"}},
		metav1.CreateOptions{FieldManager: somebody})
	if err != nil {
		return err
	}
	owned, err := objects.Create(t.Ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "examine-owned-",
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner,
			corev1.SchemeGroupVersion.WithKind("ConfigMap"))}}}, metav1.CreateOptions{FieldManager: somebody})
	if err != nil {
		return err
	}
	if err := objects.Delete(t.Ctx, owner.Name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	return t.Eventually(time.Hour, func() error { // the time of the trial is shorter
		if _, err := objects.Get(t.Ctx, owned.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return errors.Join(errors.New("the garbage collector has not deleted an object without its owner"), err)
		}
		return nil
	})
}

// isOwned reports whether a request is about an object that the operator owns.
func (t *trial) isOwned(e ledger.Entry) bool {
	return slices.ContainsFunc(t.owns(), func(c child) bool {
		return c.GVR.Group == e.Group && c.GVR.Resource == e.Resource && c.Name == e.Name
	})
}

// deleteAndCreate deletes the sample, and creates it again with the same name.
func (t *trial) deleteAndCreate() (Finding, error) {
	if err := t.serve(); err != nil {
		return Finding{}, err
	}
	name := t.target.sample.GetName()
	begin := time.Now()
	if err := t.samples().Delete(t.Ctx, name, metav1.DeleteOptions{}); err != nil {
		return Finding{}, err
	}
	if err := t.Eventually(20*time.Second, t.nothingLeft); err != nil {
		return failed("20 s after the deletion %v", err), nil
	}
	took := time.Since(begin)
	if err := t.quiet(time.Second); err != nil {
		return Finding{}, err
	}
	if err := t.nothingLeft(); err != nil {
		return failed("first all objects were gone, then %v", err).with(lines(t.Writes(0))...), nil
	}
	if err := t.serve(); err != nil {
		return failed("created again under the same name: %v", err), nil
	}
	mark := t.Mark()
	if err := t.Eventually(10*time.Second, t.asUndisturbed); err != nil {
		return t.notRecovered("10 s after the sample was created again under the same name", mark, err), nil
	}
	return passed("all was gone after %.1f s, and the same name worked again", took.Seconds()), nil
}

// nothingLeft returns nil when the sample, its children and its objects outside the namespace are gone.
func (t *trial) nothingLeft() error {
	if err := t.childrenGone(); err != nil {
		return err
	}
	return t.leftOutside()
}

// childrenGone returns nil when the sample and its children are gone.
func (t *trial) childrenGone() error {
	if u, err := t.sample(); err == nil {
		return fmt.Errorf("the sample is left, held by the finalizers %q", u.GetFinalizers())
	}
	var left []string
	why := "nothing deleted it"
	for _, c := range t.owns() {
		switch u, err := t.at(c).Get(t.Ctx, c.Name, metav1.GetOptions{}); {
		case apierrors.IsNotFound(err):
		case err != nil:
			return err
		case u.GetDeletionTimestamp() != nil && len(u.GetFinalizers()) > 0:
			return fmt.Errorf("%s is left, held by the finalizers %q", c, u.GetFinalizers())
		default:
			left = append(left, c.String())
			if len(u.GetOwnerReferences()) == 0 {
				why = "it has no owner reference and nothing deleted it"
			}
		}
	}
	if len(left) > 0 {
		return fmt.Errorf("%s is left: %s", strings.Join(left, ", "), why)
	}
	return nil
}
