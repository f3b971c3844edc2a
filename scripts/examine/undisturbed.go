package examine

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"example.com/operator-workshop/scripts/examine/ledger"
	"example.com/operator-workshop/scripts/examine/sequence"
	"example.com/operator-workshop/scripts/examine/state"
)

// A key names a write in the same way in each run.
type key = sequence.Key

// undisturbed creates the sample several times and learns from these runs.
func (r *run) undisturbed() error {
	creations := r.keepCreations()
	defer creations.Release()
	times := 3
	if r.target.Fast {
		times = 2
	}
	for n := range times {
		r.progress("undisturbed creation %d of %d", n+1, times)
		_, err := r.try(func(t *trial) (Finding, error) {
			if err := t.learn(); err != nil || n != times-2 {
				return Finding{}, err
			}
			return Finding{}, t.restarted()
		})
		if r.ctx.Err() != nil {
			return r.ctx.Err()
		}
		if err != nil {
			return r.neverReady(err)
		}
	}
	if !r.operator.metrics(r.ctx).timed {
		r.report.Notes = append(r.report.Notes, "It is not known whether a reconcile is under way all the time: the lab reads "+
			"no metrics of the operator (--metrics-bind-address).")
	}
	if served, err := r.fixture.Webhooks.Called(r.ctx); err == nil && len(served) > 0 {
		r.report.Notes = append(r.report.Notes, fmt.Sprintf("Its webhooks were served: %s.", strings.Join(served, ", ")))
	}
	r.state, r.varying = state.Common(r.states)
	for c, fields := range r.fields {
		r.fields[c] = slices.DeleteFunc(fields, func(p path) bool { return r.generated[fieldOf{c, p.String()}] })
	}
	for _, c := range r.children {
		r.secrets.Publish(c.Name)
		verb := "owns"
		if r.isGiven(c) {
			verb = "was given"
		}
		r.progress("  it %s %s and sets %d fields of it", verb, c, len(r.fields[c]))
		r.report.Children = append(r.report.Children, fmt.Sprintf("%s (%d fields)", c, len(r.fields[c])))
	}
	for _, c := range r.outside {
		r.progress("  it writes %s outside the namespace of the sample", c)
		r.report.Children = append(r.report.Children, c.String()+" (outside the namespace)")
	}
	if len(r.children) == 0 {
		r.progress("  it writes no other object")
	}
	return nil
}

// restarted restarts the operator over the sample, and waits until the sample is ready again. The next run learns from
// it which values live as long as a process. The operator also reconciles a sample that has all its objects and pods,
// which some operators otherwise do only after minutes. An operator that reports no condition, and logs errors about
// such a sample after two restarts, never finishes its work: some operators repeat it only after minutes.
func (t *trial) restarted() error {
	for n := 1; ; n++ {
		t.operator.Kill()
		err := t.operator.start(t.Ctx)
		if err == nil {
			err = t.await(40 * time.Second)
		}
		if err != nil {
			return fmt.Errorf("after a restart of the operator: %w", err)
		}
		u, err := t.sample()
		if err != nil || t.target.Ready != "" || readyCondition("", u) != nil {
			return err
		}
		errs := t.newFailing()
		if err := errs.look(t, t.metrics()); err == nil || n == 2 {
			return t.orAsksPods(err)
		}
	}
}

// learn creates the sample, waits until it is ready, and records the operator's writes and children.
func (t *trial) learn() error {
	begin := t.clock.Now()
	if err := t.serve(); err != nil {
		return errors.Join(err, t.sight())
	}
	t.run.slowest = max(t.slowest, t.clock.Now()-begin)
	t.findPause()
	if len(t.keys) == 0 && !t.specified {
		if err := t.finished(); err != nil {
			return err
		}
	}
	t.findLocks()
	t.run.writesStatus = t.writesStatus || slices.ContainsFunc(t.Changes(0), func(e ledger.Entry) bool {
		return e.FullResource() == t.target.what()+"/status" && e.Name == t.target.sample.GetName()
	})
	if t.children == nil {
		children, err := t.discoverChildren()
		if err != nil {
			return err
		}
		t.run.children = children
		if t.run.outside, err = t.writtenOutside(); err != nil {
			return err
		}
	}
	for _, c := range t.children {
		if t.fields[c] == nil {
			fields, err := t.discoverFields(c)
			if err != nil {
				return err
			}
			t.fields[c] = fields
		}
		if err := t.learnValues(c); err != nil {
			return err
		}
	}
	t.keys = append(t.keys, sequence.KeysOf(t.Changes(0)))
	s, err := t.observe()
	if err != nil {
		return fmt.Errorf("the names of its children differ from run to run, and they are found by their names: %w", err)
	}
	t.states = append(t.states, s)
	return nil
}

// finished returns an error when an operator creates an object after a pause in which it wrote nothing. An operator that
// works at intervals, and reports no condition, looks ready in such a pause.
func (t *trial) finished() error {
	u, err := t.sample()
	if err != nil || t.target.Ready != "" || readyCondition("", u) != nil {
		return err
	}
	children, err := t.discoverChildren()
	if err != nil {
		return err
	}
	mark, begin, window := t.Mark(), time.Now(), 12*time.Second
	if len(children) == 0 {
		window *= 2 // more than two intervals of 10 s
	}
	err = t.Eventually(window, func() error {
		for _, e := range t.Changes(mark) {
			if e.Creates() && slices.Contains(e.Served, http.StatusCreated) {
				return nil
			}
		}
		return errNothing
	})
	if err != nil {
		return nil
	}
	pause := max(time.Since(begin), time.Second).Round(time.Second)
	if err := t.quietWithin(time.Minute, window); err != nil && !errors.Is(err, errRestless) {
		return err
	}
	if u, err = t.sample(); err != nil {
		return err
	}
	return fmt.Errorf("the operator wrote nothing for about %v, and then created an object. The sample has no condition "+
		"Ready, so the lab does not see when the operator has finished: name that state in READY=. Its status is now %s",
		pause, shortened(text(u.Object["status"]), 300))
}

// findPause takes a long pause between two requests of a creation as the operator's period: such an operator works at
// intervals, and not when an event comes.
func (t *trial) findPause() {
	if t.target.Period.Duration > 0 {
		return
	}
	last := t.began
	for _, e := range t.fixture.Ledger.Entries(t.Mine(0)) {
		if pause := e.Start.Sub(last); pause > max(longPause, t.period) {
			t.run.period = pause.Round(time.Second)
		}
		last = e.Start
	}
}

// longPause is longer than pods need to become ready on simulated nodes.
const longPause = 5 * time.Second

// sight describes the operator's activity, for the message about a sample that never gets ready.
func (t *trial) sight() error {
	writes := t.Writes(0)
	if len(writes) == 0 {
		return errors.New("it sent no write at all for the sample")
	}
	return fmt.Errorf("its last writes:\n  %s", strings.Join(lines(writes[max(0, len(writes)-5):]), "\n  "))
}

func (r *run) neverReady(err error) error {
	if p := r.operator.Process(); p != nil && !p.Running() && !errors.Is(err, errNotStarted) {
		fix := cmp.Or(limitOf(p.Output()), "see its last lines and fix that first")
		return fmt.Errorf("the operator %v while it handled the sample, so nothing can be examined: %s%s", p.Exit(), fix,
			words(p))
	}
	return fmt.Errorf("the sample never got ready undisturbed, so no disturbed end can be compared with it: %w\nFix: %s%s",
		err, cmp.Or(missingCRD(r.operator.Process().Output()), whatToDo(err)), words(r.operator.Process()))
}
