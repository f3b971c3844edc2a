package examine

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"example.com/operator-workshop/scripts/examine/fixture"
	"example.com/operator-workshop/scripts/examine/ledger"
)

// patience is how long a change by another client may stay: longer when the operator needed long for its creations, as
// it does on a busy machine, but shorter than a given resync period: a resync must not look like a reaction.
func (r *run) patience() time.Duration {
	least, most := 6*time.Second, 12*time.Second
	if r.target.Fast {
		least = 3 * time.Second
	}
	if period := r.target.Period.Duration; period > 0 {
		most = period / 2
	}
	return max(least, min(most, (2*r.slowest).Round(time.Second)))
}

// untilResync is how long the lab waits for an operator that may react at once, or at its next resync: at most most. Findings
// name this time.
func (r *run) untilResync(least, most time.Duration) time.Duration {
	if r.period == 0 {
		return least
	}
	return max(least, min(r.period+least, most)).Round(100 * time.Millisecond)
}

// afterRestart is how long the lab waits for the work of a restarted operator. An operator that works at intervals may
// need two: it finds the samples in the first, and works in the second.
func (r *run) afterRestart() time.Duration {
	return max(2*time.Second, min(2*r.period+time.Second, time.Minute)).Round(100 * time.Millisecond)
}

// alwaysTried is how many children are disturbed even when the time is over: a report without any would be empty.
const alwaysTried = 2

// drift deletes and changes the objects that the operator owns. When there are many children, the time may suffice
// only for some.
func drift(r *run) error {
	if len(r.owns()) == 0 {
		r.add("what it owns is restored", skipped("the operator writes no other object that is its own"))
		return nil
	}
	deleteChild := func(c child) (Finding, error) {
		return r.try(func(t *trial) (Finding, error) { return t.deleteChild(c) })
	}
	untried, fields := 0, 0
	changeFields := func(c child) (Finding, error) {
		f, left, of, err := r.changeFields(c)
		untried, fields = untried+left, fields+of
		return f, err
	}
	const others = 4 // a label, a status, a falsified status, an autoscaler
	whole, checks := r.deadline, 2*len(r.owns())+others
	for _, part := range []struct {
		name, what string
		do         func(c child) (Finding, error)
	}{{"a deleted %s comes back", "deleted children", deleteChild},
		{"changed fields of %s are restored", "changed children", changeFields}} {
		left := 0
		for n, c := range byKind(r.owns()) {
			if r.deadline = whole; n >= alwaysTried && r.late() {
				left++
				continue
			}
			// A child gets its share of the time: of an operator that restores nothing, the lab waits for each field.
			now := r.clock.Now()
			r.deadline = now + (whole-now)/time.Duration(checks)
			checks--
			if err := r.judge(fmt.Sprintf(part.name, c), func() (Finding, error) { return part.do(c) }); err != nil {
				return err
			}
		}
		r.leftOut(part.what, left, len(r.owns()))
	}
	r.deadline = whole
	r.leftOut("fields of the changed children", untried, fields)
	if labels := slices.Sorted(maps.Keys(r.lost)); len(labels) > 0 {
		children := slices.Concat(slices.Collect(maps.Values(r.lost))...)
		slices.Sort(children)
		r.add("it sees its objects whatever their labels are",
			failed("when a user changes %s of %s, the operator no longer sees the object: no change of it is restored",
				strings.Join(labels, " or "), strings.Join(slices.Compact(children), ", ")))
	}
	var cost Finding
	err := r.check("an addition by another client stays", func(t *trial) (f Finding, err error) {
		f, cost, err = t.addLabels()
		return f, err
	})
	if err == nil && r.lastVerdict() == Passed {
		r.add("an addition by another client causes no write", cost)
	}
	if err == nil {
		err = r.check("a removed status comes back", (*trial).restoresStatus)
	}
	if err != nil {
		return err
	}
	return r.fights()
}

// byKind sorts the first child of each kind before the second child of any kind.
func byKind(all []child) (sorted []child) {
	seen := map[string]int{}
	rank := map[child]int{}
	for _, c := range all {
		rank[c] = seen[ledgerName(c)]
		seen[ledgerName(c)]++
	}
	return slices.SortedStableFunc(slices.Values(all), func(a, b child) int { return rank[a] - rank[b] })
}

func (t *trial) deleteChild(c child) (Finding, error) {
	if err := t.idle(); err != nil {
		return Finding{}, err
	}
	u, err := t.at(c).Get(t.Ctx, c.Name, metav1.GetOptions{})
	if err != nil {
		return Finding{}, err
	}
	mark, begin := t.Mark(), time.Now()
	if err := t.at(c).Delete(t.Ctx, c.Name, metav1.DeleteOptions{}); err != nil {
		return Finding{}, err
	}
	observe := func() (*unstructured.Unstructured, error) {
		now, err := t.at(c).Get(t.Ctx, c.Name, metav1.GetOptions{})
		if err == nil && now.GetUID() == u.GetUID() {
			err = errOld
		}
		return now, err
	}
	_ = t.Eventually(20*time.Second, func() error { // a namespace takes some seconds to disappear
		if now, err := observe(); errors.Is(err, errOld) && now.GetDeletionTimestamp() != nil {
			return err
		}
		return nil
	})
	if now, err := observe(); errors.Is(err, errOld) && isProtected(now) {
		return skipped("the cluster keeps it as long as it is in use, by its finalizers %q", now.GetFinalizers()), nil
	}
	back := func() error { _, err := observe(); return err }
	err = t.Eventually(t.patience(), back)
	later := err != nil && t.awaitPeriod(begin, back)
	if err != nil && !later {
		watch := "watches "
		if !t.watches(ledgerName(c)) {
			watch = "does not watch "
		}
		return failed("%v after the deletion: %v; the operator %s", t.untilResync(t.patience(), time.Hour), err,
			watch+ledgerName(c)).with(lines(t.Writes(mark))...), nil
	}
	took := time.Since(begin)
	if err := t.Eventually(20*time.Second, t.asUndisturbed); err != nil {
		return t.notRecovered(fmt.Sprintf("%.0f s after the deletion it was back; 20 s later", took.Seconds()), mark,
			err), nil
	}
	if later {
		return late("back only after %.0f s", took.Seconds()), nil
	}
	return passed("back after %.1f s, at the cost of %d writes", took.Seconds(), len(t.Writes(mark))), nil
}

// usualPeriod is how long the lab waits once for a resync of an operator, when no period was given and the lab saw
// none. Resyncs of 30 s are common.
const usualPeriod = 35 * time.Second

// awaitPeriod waits until the operator's next resync for a change that did not come at once. It reports whether the
// resync brought the change. Without a known period, awaitPeriod waits only once.
func (t *trial) awaitPeriod(begin time.Time, observe func() error) bool {
	wait := cmp.Or(t.period, usualPeriod)
	if t.waited && t.period == 0 || t.target.Fast && t.period == 0 {
		return false
	}
	t.run.waited = true
	if t.Eventually(wait, observe) != nil {
		return false
	}
	// The change came some time before the resync, so the period may be longer than the lab has waited.
	t.run.period = max(wait, time.Since(begin))
	return true
}

// isProtected reports whether only controllers of the cluster keep an object that is being deleted, such as a claim
// that a pod uses.
func isProtected(u *unstructured.Unstructured) bool {
	return u.GetDeletionTimestamp() != nil && !slices.ContainsFunc(u.GetFinalizers(),
		func(name string) bool { return !strings.HasPrefix(name, "kubernetes.io/") })
}

var errOld = errors.New("it is still the old one")

// perSample is how many fields are changed in the life of one sample: an operator may limit how often it restores a
// field, so that two clients do not write against each other forever.
const perSample = 3

// changeFields changes the fields that the operator sets, some of them in each of several samples. It changes a field
// that stayed changed again in steady state, because a rate limiter may only have delayed the operator. It also returns
// how many fields the time did not suffice for, and of how many.
func (r *run) changeFields(c child) (f Finding, left, of int, err error) {
	if err := r.ensureRunning(r.ctx); err != nil {
		return f, 0, 0, err
	}
	chosen := spread(r.fields[c], r.mostFields())
	all := r.changeAll(c, chosen)
	if all.err != nil && len(all.kept) == 0 {
		return f, 0, 0, all.err
	}
	left = len(chosen) - all.changed - all.fixed
	alone, err := r.changeAgain(c, all.kept)
	if err != nil {
		return f, 0, 0, err
	}
	all.changed -= alone.left
	f = r.judgeFields(c, all, alone)
	f.Of = all.changed + all.fixed
	return f, left + alone.left, len(chosen), nil
}

// judgeFields is the finding about the fields of a child. Those that stayed changed were changed once more, alone.
func (r *run) judgeFields(c child, all, alone changes) Finding {
	kept, slowest := alone.kept, max(all.slowest, alone.slowest)
	note := ""
	if left := len(r.fields[c]) - all.changed - all.fixed - alone.left; left > 0 {
		note = fmt.Sprintf("; %d were not tried", left)
	}
	if alone.left > 0 {
		note += fmt.Sprintf("; the time was over before %d that stayed changed at first were changed alone", alone.left)
	}
	if all.fixed > 0 {
		note += fmt.Sprintf("; the API server lets no client change %d others", all.fixed)
	}
	restored := all.changed - len(alone.lost)
	if len(alone.lost) > 0 {
		note += "; without " + strings.Join(alone.lost, " or ") + " the operator does not see it"
	}
	switch {
	case len(kept) > 0:
		return failed("%d of %d fields that it sets stayed changed for %v: %s%s", len(kept), all.changed,
			r.untilResync(r.patience(), time.Hour), namesOf(kept), note).with(said(kept)...)
	case all.changed == 0:
		return skipped("no field was changed%s", note)
	case alone.later > 0:
		return late("%d fields were restored; of these %d only after %.0f s%s", restored, alone.later, slowest.Seconds(), note)
	}
	return passed("%d fields were restored, the slowest after %.1f s, at the cost of %d writes%s", restored,
		slowest.Seconds(), all.writes, note)
}

// leastFields is how many fields of a child are changed even when the time is over.
const leastFields = 4 * perSample

// mostFields is how many fields of a child are changed: fewer where there are many children.
func (r *run) mostFields() int {
	if r.target.Fast {
		return max(perSample, 12*perSample/max(3, len(r.owns())))
	}
	return max(leastFields, 240/len(r.owns()))
}

// changeAll changes fields in several samples at once, a few in each.
func (r *run) changeAll(c child, fields []path) (all changes) {
	at, tried := 6, 0
	if r.serial() {
		at = 1
	}
	var mu sync.Mutex
	slots, running := make(chan struct{}, at), sync.WaitGroup{}
	for chunk := range slices.Chunk(lastMetadata(fields), perSample) {
		if r.ctx.Err() != nil || tried >= min(leastFields, at*perSample) && r.late() {
			break // a slow operator: the results so far count
		}
		tried += len(chunk)
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			some, err := r.changeSome(c, chunk, false)
			mu.Lock()
			defer mu.Unlock()
			if errors.Is(err, errOver) {
				return // what others found counts
			}
			all.add(some, err)
			for _, k := range some.kept {
				r.kept[fieldOf{c, k.path.String()}] = true
			}
		})
	}
	running.Wait()
	return all
}

// changeAgain changes the first fields that stayed changed once more, each in a separate sample without other
// changes, and waits for the operator's period. When each of them stays changed again, all fields count as
// not restored. Otherwise it changes the others until the time is over, and at least two fields.
func (r *run) changeAgain(c child, kept []keptField) (alone changes, err error) {
	const least = 2
	most := 4
	switch {
	case r.target.Fast:
		most = 1
	case r.period > r.patience(): // each waits for a resync
		most = 2
	}
	for n, k := range kept {
		over := n >= least && r.late()
		if (over || n >= most) && len(alone.kept) == n {
			alone.kept = append(alone.kept, kept[n:]...)
			return alone, nil
		}
		var one changes
		if !over {
			one, err = r.changeSome(c, []path{k.path}, true)
		}
		if over || errors.Is(err, errOver) {
			alone.left = len(kept) - n
			return alone, nil
		}
		if err != nil {
			return alone, err
		}
		alone.add(one, nil)
	}
	return alone, nil
}

// isLabel reports whether a path is a label of the object itself.
func (p path) isLabel() bool {
	return len(p) == 3 && p[0].field == "metadata" && p[1].field == "labels"
}

// released reports whether the operator has removed its owner reference from a child, as a Deployment does when the labels of
// its ReplicaSet no longer match its selector.
func (t *trial) released(c child) bool {
	u, err := t.at(c).Get(t.Ctx, c.Name, metav1.GetOptions{})
	isReference := func(p path) bool { return p.String() == ".metadata.ownerReferences" }
	return err == nil && len(u.GetOwnerReferences()) == 0 && slices.ContainsFunc(t.fields[c], isReference)
}

// sees reports whether the operator restores another field of a child whose label was changed.
func (t *trial) sees(c child) bool {
	for _, p := range t.fields[c] {
		if p[0].field == "metadata" || t.kept[fieldOf{c, p.String()}] {
			continue
		}
		pointer, value, err := t.disturb(c, p)
		if err != nil || pointer == "" {
			continue
		}
		begin, isBack := time.Now(), func() error { return t.has(c, p, value) }
		return t.Eventually(t.patience(), isBack) == nil || t.awaitPeriod(begin, isBack)
	}
	return true // no observation shows that it does not
}

// lastMetadata sorts labels and owner references behind the other fields. An operator may find its children by them:
// while one is gone, it may not receive events about the child.
func lastMetadata(fields []path) []path {
	rank := func(p path) int {
		switch {
		case p.String() == ".metadata.ownerReferences":
			return 2
		case p[0].field == "metadata":
			return 1
		}
		return 0
	}
	return slices.SortedStableFunc(slices.Values(fields), func(a, b path) int { return rank(a) - rank(b) })
}

// changes are the results for fields that the lab changed.
type changes struct {
	changed, fixed, writes int // fixed fields cannot be changed
	later                  int // restored after the operator's next resync
	left                   int // stayed changed, and were not changed once more
	kept                   []keptField
	lost                   []string // labels without which the operator does not see the child
	slowest                time.Duration
	err                    error
}

// A keptField is a field that the operator did not restore; says describes the change.
type keptField struct {
	path path
	says string
}

// namesOf returns the names of the first fields, for a message of one line.
func namesOf(kept []keptField) string {
	const most = 3
	var names []string
	for _, k := range kept[:min(len(kept), most)] {
		names = append(names, k.path.String())
	}
	if len(kept) > most {
		names = append(names, "…")
	}
	return strings.Join(names, ", ")
}

func said(kept []keptField) (all []string) {
	for _, k := range kept {
		all = append(all, k.says)
	}
	return all
}

func (c *changes) add(more changes, err error) {
	c.changed, c.fixed, c.writes = c.changed+more.changed, c.fixed+more.fixed, c.writes+more.writes
	c.kept, c.slowest, c.err = append(c.kept, more.kept...), max(c.slowest, more.slowest), errors.Join(c.err, err)
	c.later, c.lost = c.later+more.later, append(c.lost, more.lost...)
}

// changeSome changes fields one after the other, in a separate sample. When it is again, a field may come back at the
// operator's next resync.
func (r *run) changeSome(c child, fields []path, again bool) (all changes, err error) {
	err = r.inTrial(func(t *trial) error {
		if err := t.idle(); err != nil {
			return err
		}
		mark := t.Mark()
		for _, p := range fields {
			pointer, value, err := t.disturbAgain(c, p)
			if err != nil {
				return err
			}
			if pointer == "" {
				all.fixed++
				continue
			}
			all.changed++
			begin, isBack := time.Now(), func() error { return t.has(c, p, value) }
			err = t.Eventually(t.patience(), isBack)
			switch {
			case err == nil:
				all.slowest = max(all.slowest, time.Since(begin))
			case again && t.awaitPeriod(begin, isBack):
				all.later++
				all.slowest = max(all.slowest, time.Since(begin))
			case again && p.isLabel() && t.released(c):
				all.kept = append(all.kept, keptField{p, fmt.Sprintf("%s: %v; the operator has released the object: it removed its owner "+
					"reference", p, err)})
			case again && p.isLabel() && !t.sees(c):
				all.lost = append(all.lost, p.String())
			default:
				all.kept = append(all.kept, keptField{p, fmt.Sprintf("%s: %v", p, err)})
			}
		}
		all.writes = len(t.Writes(mark))
		return nil
	})
	if err != nil {
		return changes{}, err
	}
	for _, label := range all.lost {
		r.lost[label] = append(r.lost[label], c.String())
	}
	return all, nil
}

// disturbAgain disturbs a field. An operator may restore an object by deleting and recreating it, so disturbAgain
// waits for the new object.
func (t *trial) disturbAgain(c child, p path) (pointer string, value any, err error) {
	_ = t.Eventually(t.patience(), func() error {
		if pointer, value, err = t.disturb(c, p); apierrors.IsNotFound(err) {
			return err
		}
		return nil
	})
	return pointer, value, err
}

// addLabels adds a label to each child, as other programs do. It does not label the sample, because many operators
// copy its labels to the children. The cost is the finding about the writes that followed before a restart of the operator.
func (t *trial) addLabels() (f, cost Finding, err error) {
	if err := t.rest(); err != nil {
		return f, cost, err
	}
	mark, begin := t.Mark(), time.Now()
	for _, c := range t.children {
		patch, kind := addition{child: c}.patch()
		if _, err := t.at(c).Patch(t.Ctx, c.Name, kind, patch, metav1.PatchOptions{FieldManager: somebody}); err != nil {
			return f, cost, err
		}
	}
	if err := fixture.Pause(t.Ctx, 2*time.Second); err != nil {
		return f, cost, err
	}
	cost = costOfAddition(t.Writes(0), begin, progress(t.asUndisturbedWithAddition()))
	lost, err := t.unlabelled()
	when := ""
	if err == nil && len(lost) == 0 { // no event may have started a reconcile
		when = " after a restart of the operator"
		t.operator.Kill()
		if err := t.operator.start(t.Ctx); err != nil {
			return f, cost, err
		}
		if err := fixture.Pause(t.Ctx, t.afterRestart()); err != nil {
			return f, cost, err
		}
		lost, err = t.unlabelled()
	}
	if len(lost) > 0 {
		f = failed("an added label is gone from %s%s", strings.Join(lost, ", "), when).with(lines(t.Writes(mark))...)
		return f, cost, err
	}
	return passed("the added labels stayed, also after a restart of the operator"), cost, err
}

// costOfAddition judges the writes before and after an addition. The writes of an operator that also writes without an
// addition show nothing, and neither do those for a sample that made progress meanwhile.
func costOfAddition(writes []ledger.Entry, added time.Time, progress string) Finding {
	last := slices.IndexFunc(writes, func(e ledger.Entry) bool { return !e.Start.Before(added) })
	if last < 0 {
		last = len(writes)
	}
	if last > 0 && added.Sub(writes[last-1].Start) < restFor {
		return skipped("the operator writes also without an addition, as the steady state shows")
	}
	if last < len(writes) && progress != "" {
		return skipped("%s", progress).with(lines(writes[last:])...)
	}
	return noneOf(writes[last:], "%d writes followed when a user added a label to each child")
}

// unlabelled are the children that no longer have the label of addLabels.
func (t *trial) unlabelled() (names []string, err error) {
	for _, c := range t.children {
		stays, err := t.stays(addition{child: c})
		if err != nil {
			return nil, err
		}
		if !stays {
			names = append(names, c.String())
		}
	}
	return names, nil
}
