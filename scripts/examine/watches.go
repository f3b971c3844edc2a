package examine

import (
	"context"
	"fmt"
	"slices"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/operator-workshop/scripts/examine/clock"
	"example.com/operator-workshop/scripts/examine/fixture"
	"example.com/operator-workshop/scripts/examine/ledger"
	"example.com/operator-workshop/scripts/examine/proxy"
	"example.com/operator-workshop/scripts/examine/wire"
)

// A watchFault ends the operator's watches.
type watchFault struct {
	name string
	end  func(*proxy.Stream) error
	fast bool
}

var watchFaults = []watchFault{
	{"watches that were frozen and cut", func(s *proxy.Stream) error { s.Cut(); return nil }, false},
	{"watches that end with 410 Gone", (*proxy.Stream).Expire, true},
	{"watches that end as they do every few minutes", func(s *proxy.Stream) error { s.End(); return nil }, false},
}

// watchesLost deletes a child while the operator receives no events, and then ends its watches.
func (t *trial) watchesLost(w watchFault) (Finding, error) {
	c := t.restored
	if f, err := t.serveRestored(); err != nil || f.Verdict == Skipped {
		return f, err
	}
	freeze := t.Everywhere(proxy.Rule{Name: "freeze", Do: proxy.Freeze(), Match: ledger.Match{Verbs: []string{wire.Watch}}})
	if err := t.at(c).Delete(t.Ctx, c.Name, metav1.DeleteOptions{}); err != nil {
		return Finding{}, err
	}
	if err := fixture.Pause(t.Ctx, time.Second); err != nil {
		return Finding{}, err
	}
	freeze.Remove()
	mark := t.Mark()
	for _, s := range t.fixture.Proxy.Streams(ledger.Match{Users: []string{t.operator.user.Name}}) {
		if err := w.end(s); err != nil {
			s.Cut()
		}
	}
	freeze.Release()
	begin := time.Now()
	if err := t.Eventually(40*time.Second, t.asUndisturbed); err != nil {
		return failed("%s was deleted meanwhile, and 40 s later: %v", c, err).with(lines(t.Writes(mark))...), nil
	}
	f := passed("%s was deleted meanwhile, and was back %.1f s later, with %d writes", c, time.Since(begin).Seconds(),
		len(t.Writes(mark)))
	return t.worksAgain(f, t.watchesBack())
}

// worksAgain deletes a child after a recovery, and adds the result to the finding about the recovery. A list may have
// brought back all lost objects, so only this deletion shows that the operator watches again. After an error, nothing is
// deleted.
func (t *trial) worksAgain(recovered Finding, err error) (Finding, error) {
	c := t.restored
	if err != nil || t.unrestored || c.Name == "" {
		return recovered, err
	}
	if err := t.at(c).Delete(t.Ctx, c.Name, metav1.DeleteOptions{}); err != nil {
		return Finding{}, err
	}
	begin := time.Now()
	if err := t.Eventually(t.patience(), t.asUndisturbed); err != nil && !t.awaitPeriod(begin, t.asUndisturbed) {
		return failed("%s; after that, %s was deleted, and is not back %.0f s later: %v", recovered.What, c,
			time.Since(begin).Seconds(), err).with(lines(t.Writes(0))...), nil
	}
	recovered.What += fmt.Sprintf("; after that, %s was deleted, and was back %.1f s later", c, time.Since(begin).Seconds())
	return recovered, nil
}

// findRestored finds, once, the child that the lab deletes to see whether the operator works. A child that does not come
// back undisturbed cannot show what a disturbance does.
func (r *run) findRestored() error {
	if len(r.owns()) == 0 || r.restored.Name != "" {
		return nil
	}
	seen := map[string]bool{}
	for _, c := range byKind(r.owns()) {
		if seen[ledgerName(c)] {
			break // each kind has been tried
		}
		seen[ledgerName(c)] = true
		back := false
		_, err := r.try(func(t *trial) (f Finding, err error) {
			back, err = t.comesBack(c)
			return f, err
		})
		if r.ctx.Err() != nil {
			return context.Cause(r.ctx)
		}
		if err == nil && back {
			r.restored = c
			return nil
		}
		r.operator.Kill() // the next trial starts a new process, without the state of this trial
	}
	r.restored, r.unrestored = r.owns()[0], true
	return nil
}

// comesBack reports whether a deleted child comes back undisturbed.
func (t *trial) comesBack(c child) (bool, error) {
	if err := t.serve(); err != nil {
		return false, err
	}
	if err := t.at(c).Delete(t.Ctx, c.Name, metav1.DeleteOptions{}); err != nil {
		return false, err
	}
	begin := time.Now()
	return t.Eventually(t.patience(), t.asUndisturbed) == nil || t.awaitPeriod(begin, t.asUndisturbed), nil
}

// serveRestored serves the sample, and is skipped for an operator that restores no deleted child undisturbed.
func (t *trial) serveRestored() (Finding, error) {
	if t.unrestored {
		return skipped("without a disturbance, a deleted %s does not come back, either", t.restored), nil
	}
	return Finding{}, t.serve()
}

// watchesBack waits until the operator has begun its watches again. An operator begins each watch after a short random
// pause.
func (t *trial) watchesBack() error {
	ctx, cancel := t.clock.Within(t.Ctx, 10*time.Second, clock.ErrLate)
	defer cancel()
	_ = t.fixture.Ledger.AwaitQuiet(ctx, 2*time.Second, ledger.Match{Users: []string{t.operator.user.Name},
		Verbs: []string{wire.List, wire.Watch}})
	return t.Ctx.Err()
}

// watchesFrozen creates the sample while the operator receives no events about its children: the connections stay
// open, and the operator's caches lack its own writes.
func (t *trial) watchesFrozen() (Finding, error) {
	var kinds []string
	for _, c := range t.children {
		kinds = append(kinds, ledgerName(c))
	}
	freeze := t.Everywhere(proxy.Rule{Name: "freeze", Do: proxy.Freeze(),
		Match: ledger.Match{Verbs: []string{wire.Watch}, Resources: kinds}})
	if freeze.Fired() == 0 {
		return skipped("before there is a sample, it watches none of its children"), nil
	}
	if err := t.create(); err != nil {
		return Finding{}, err
	}
	w, err := t.watch(time.Now(), t.Mark())
	if err != nil {
		return Finding{}, err
	}
	freeze.Release()
	begin := time.Now()
	if err := t.Eventually(40*time.Second, t.asUndisturbed); err != nil {
		return Finding{}, err
	}
	if w.hot() {
		return failed("a hot loop: %v, while it received no events about its children", w).with(lines(w.entries)...), nil
	}
	return t.worksAgain(passed("%v while it received no events about its children; as undisturbed %.1f s after the end", w,
		time.Since(begin).Seconds()), nil)
}

// apiServerKilled stops the API server for some seconds.
func (t *trial) apiServerKilled() (Finding, error) {
	c := t.restored
	if f, err := t.serveRestored(); err != nil || f.Verdict == Skipped {
		return f, err
	}
	watched := t.watches(ledgerName(c))
	if err := t.fixture.Signal(fixture.APIServer, syscall.SIGKILL); err != nil {
		return Finding{}, err
	}
	paused := fixture.Pause(t.Ctx, 3*time.Second)
	if err := t.fixture.Repair(t.Ctx); err != nil {
		return Finding{}, fmt.Errorf("%w: %w", errBroken, err)
	} else if paused != nil {
		return Finding{}, paused
	}
	begin := time.Now()
	survived := t.operator.Running()
	if !survived { // the operator may end: Kubernetes starts it again
		if err := t.operator.start(t.Ctx); err != nil {
			return Finding{}, err
		}
	}
	if err := t.at(c).Delete(t.Ctx, c.Name, metav1.DeleteOptions{}); err != nil {
		return Finding{}, err
	}
	if err := t.Eventually(60*time.Second, t.asUndisturbed); err != nil {
		return Finding{}, err
	}
	how := "the operator stayed alive"
	if !survived {
		how = "the operator ended and was started again"
	}
	f := passed("%s; it worked again %.1f s after the API server did", how, time.Since(begin).Seconds())
	_ = t.Eventually(30*time.Second, func() error { // client-go waits longer after each error
		if watched && !t.watches(ledgerName(c)) {
			return fmt.Errorf("it does not watch %s yet", ledgerName(c))
		}
		return nil
	})
	return t.worksAgain(f, t.watchesBack())
}

// watches reports whether the operator has a watch of a resource.
func (t *trial) watches(resource string) bool {
	return len(t.fixture.Proxy.Streams(ledger.Match{Users: []string{t.operator.user.Name}, Verbs: []string{wire.Watch},
		Resources: []string{resource}})) > 0
}

// unwatched returns the resources that appear in some reads, and that the operator does not watch: those of the sample
// and of its children.
func (t *trial) unwatched(reads []ledger.Entry) (names []string) {
	all := []string{t.target.gvr.GroupResource().String()}
	for _, c := range t.children {
		all = append(all, ledgerName(c))
	}
	for _, what := range all {
		if !slices.Contains(names, what) && !t.watches(what) &&
			slices.ContainsFunc(reads, func(e ledger.Entry) bool { return e.FullResource() == what }) {
			names = append(names, what)
		}
	}
	return names
}
