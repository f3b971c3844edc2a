package examine

import (
	"errors"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/operator-workshop/scripts/examine/fixture"
	"example.com/operator-workshop/scripts/examine/ledger"
	"example.com/operator-workshop/scripts/examine/proxy"
	"example.com/operator-workshop/scripts/examine/wire"
)

// keepsOrphans deletes the sample, and keeps its children (kubectl delete --cascade=orphan), while the operator receives no
// event about the sample. The operator sees only that the children have lost their owner. If it makes the sample their
// owner again, the garbage collector deletes them.
func (t *trial) keepsOrphans() (Finding, error) {
	if err := t.idle(); err != nil {
		return Finding{}, err
	}
	owner, err := t.sample()
	if err != nil {
		return Finding{}, err
	}
	if len(owner.GetFinalizers()) > 0 {
		return skipped("its finalizers keep the sample until it sees the deletion: %q", owner.GetFinalizers()), nil
	}
	before, err := t.identities()
	if err != nil {
		return Finding{}, err
	}
	delete(before, t.own())
	for c := range before {
		u, err := t.at(c).Get(t.Ctx, c.Name, metav1.GetOptions{})
		if err != nil {
			return Finding{}, err
		}
		if len(u.GetOwnerReferences()) == 0 {
			delete(before, c)
		}
	}
	if len(before) == 0 {
		return skipped("no child has an owner reference"), nil
	}
	freeze := t.Everywhere(proxy.Rule{Name: "freeze", Do: proxy.Freeze(),
		Match: ledger.Match{Verbs: []string{wire.Watch}, Resources: []string{t.target.what()}}})
	mark, how := t.Mark(), metav1.DeletePropagationOrphan
	if err := t.samples().Delete(t.Ctx, owner.GetName(), metav1.DeleteOptions{PropagationPolicy: &how}); err != nil {
		return Finding{}, err
	}
	if err := t.Eventually(time.Minute, func() error {
		if _, err := t.sample(); !apierrors.IsNotFound(err) {
			return errors.Join(errors.New("the garbage collector has not released the sample"), err)
		}
		return nil
	}); err != nil {
		return skipped("%v", err), nil
	}
	if err := fixture.Pause(t.Ctx, 2*time.Second); err != nil {
		return Finding{}, err
	}
	freeze.Release()
	if err := fixture.Pause(t.Ctx, t.untilResync(3*time.Second, 15*time.Second)); err != nil {
		return Finding{}, err
	}
	if err := t.collectorWorks(); err != nil {
		return Finding{}, err
	}
	lost, err := t.takenBack(before, owner.GetUID())
	if err != nil {
		return Finding{}, err
	}
	if len(lost) > 0 {
		return failed("it took back %s, so the garbage collector deletes it with the sample", strings.Join(lost, ", ")).
			with(lines(t.Writes(mark))...), nil
	}
	return passed("%d children stayed without an owner", len(before)), nil
}

// takenBack are the children that are gone, or have an earlier owner again.
func (t *trial) takenBack(before map[child]types.UID, owner types.UID) (names []string, err error) {
	for c, uid := range before {
		u, err := t.at(c).Get(t.Ctx, c.Name, metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, err
		}
		if err != nil || u.GetUID() != uid || slices.ContainsFunc(u.GetOwnerReferences(),
			func(o metav1.OwnerReference) bool { return o.UID == owner }) {
			names = append(names, c.String())
		}
	}
	slices.Sort(names)
	return names, nil
}
