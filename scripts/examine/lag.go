package examine

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/operator-workshop/scripts/examine/fixture"
	"example.com/operator-workshop/scripts/examine/ledger"
	"example.com/operator-workshop/scripts/examine/proxy"
	"example.com/operator-workshop/scripts/examine/wire"
)

// A past makes a sample that is ready now, and returns a resource version at which the sample was not ready.
type past struct {
	name string
	make func(t *trial) (version string, err error)
	fast bool
}

var pasts = []past{
	{"an API server that lags: an earlier sample is being deleted there", (*trial).afterADeletion, true},
	{"an API server that lags: the children do not exist there yet", (*trial).beforeItsChildren, false},
}

// errLeaves is about a deletion that leaves something behind without a lag, which the experiment deletion judges.
var errLeaves = errors.New("also without a lag, an earlier sample leaves something behind")

// afterADeletion returns a version at which an earlier sample with this name was being deleted. An object outside the
// namespace may stay, and then belongs to the new sample.
func (t *trial) afterADeletion() (string, error) {
	if err := t.serve(); err != nil {
		return "", err
	}
	release, err := fixture.Hold(t.Ctx, t.samples(), t.target.sample.GetName())
	if err != nil {
		return "", err
	}
	if err := t.samples().Delete(t.Ctx, t.target.sample.GetName(), metav1.DeleteOptions{}); err != nil {
		return "", err
	}
	u, err := t.sample()
	if err := errors.Join(err, release(t.Ctx)); err != nil {
		return "", err
	}
	if err := t.Eventually(20*time.Second, t.childrenGone); err != nil {
		return "", fmt.Errorf("%w: %w", errLeaves, err)
	}
	return u.GetResourceVersion(), t.serve()
}

// beforeItsChildren returns a version at which the sample had no children.
func (t *trial) beforeItsChildren() (string, error) {
	hold := t.Everywhere(proxy.Rule{Name: "hold", Do: proxy.Hold(),
		Match: ledger.Match{Namespace: t.scope(), Verbs: wire.Writes, Except: ledger.Housekeeping}})
	defer hold.Release()
	if err := t.create(); err != nil {
		return "", err
	}
	u, err := t.sample()
	if err != nil {
		return "", err
	}
	hold.Release()
	return u.GetResourceVersion(), t.await(40 * time.Second)
}

// lags restarts the operator on an API server that knows only an earlier version, and then lets the server catch up. A
// list that asks for the newest version is never stale.
func (t *trial) lags(p past) (Finding, error) {
	version, err := p.make(t)
	if errors.Is(err, errLeaves) {
		return skipped("%v", err), nil
	} else if err != nil { // nothing lags yet
		f := skipped("before the disturbance: %v", err)
		f.Left, f.Of = 1, 1
		return f, nil
	}
	before, err := t.identities()
	if err != nil {
		return Finding{}, err
	}
	t.operator.Kill()
	var stale atomic.Int32
	reads := ledger.Match{Verbs: []string{wire.List, wire.Watch}}
	lag := t.Everywhere(proxy.Rule{Name: "lag", Match: reads, Do: proxy.Past(version, func() { stale.Add(1) })})
	reads.Verbs = []string{wire.Watch}
	freeze := t.Everywhere(proxy.Rule{Name: "freeze", Do: proxy.Freeze(), Match: reads})
	mark := t.Mark()
	if err := t.operator.start(t.Ctx); err != nil {
		return Finding{}, err
	}
	w, err := t.watch(time.Now(), mark)
	if err != nil {
		return Finding{}, err
	}
	lag.Release()
	freeze.Release()
	begin, caughtUp := time.Now(), t.Mark()
	if err := t.Eventually(40*time.Second, t.asUndisturbed); err != nil {
		return t.notRecovered("40 s after the server had caught up", caughtUp, err), nil
	}
	lost, err := t.replaced(before)
	if err != nil {
		return Finding{}, err
	}
	twice, err := t.leftBehind()
	switch {
	case err != nil:
		return Finding{}, err
	case len(lost) > 0:
		return lostBy(lost, t.Writes(mark)), nil
	case len(twice) > 0:
		return failed("it created objects a second time: %s", strings.Join(twice, ", ")).with(lines(t.Writes(mark))...), nil
	case stale.Load() == 0:
		return passed("each of its lists asks for the newest version, so no server can answer it with an older one"), nil
	}
	return t.worksAgain(passed("%d of its lists were answered as of an earlier time; %v; as undisturbed %.1f s after the "+
		"server had caught up", stale.Load(), w, time.Since(begin).Seconds()), nil)
}

// identities returns the UIDs of the sample and its children. It has none for an object that does not exist.
func (t *trial) identities() (map[child]types.UID, error) {
	all := map[child]types.UID{}
	for _, c := range append(t.owns(), t.own()) {
		u, err := t.at(c).Get(t.Ctx, c.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		} else if err != nil {
			return nil, fmt.Errorf("get %s: %w", c, err)
		}
		all[c] = u.GetUID()
	}
	return all, nil
}

// replaced returns the earlier objects that are gone, also if the operator has created them again.
func (t *trial) replaced(before map[child]types.UID) (gone []child, err error) {
	now, err := t.identities()
	if err != nil {
		return nil, err
	}
	for c := range before {
		if now[c] != before[c] {
			gone = append(gone, c)
		}
	}
	slices.SortFunc(gone, func(a, b child) int { return strings.Compare(a.String(), b.String()) })
	return gone, nil
}

// lostBy judges by the operator's writes who deleted some objects: the operator itself, or the garbage collector after
// the operator had given them to a sample that no longer exists.
func lostBy(gone []child, writes []ledger.Entry) Finding {
	var deleted, given []string
	for _, c := range gone {
		if slices.ContainsFunc(only(writes, wire.Delete, wire.DeleteCollection), func(e ledger.Entry) bool {
			return e.FullResource() == ledgerName(c) && (e.Name == c.Name || e.Verb == wire.DeleteCollection)
		}) {
			deleted = append(deleted, c.String())
		} else {
			given = append(given, c.String())
		}
	}
	if len(deleted) > 0 {
		return failed("it deleted what exists, by what it read of an earlier time: %s", strings.Join(deleted, ", ")).
			with(lines(writes)...)
	}
	return failed("it wrote by what it read of an earlier time, and the cluster then deleted %s", strings.Join(given, ", ")).
		with(lines(writes)...)
}
