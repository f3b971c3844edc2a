package examine

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"example.com/operator-workshop/scripts/examine/clock"
	"example.com/operator-workshop/scripts/examine/fixture"
	"example.com/operator-workshop/scripts/examine/ledger"
	"example.com/operator-workshop/scripts/examine/proxy"
	"example.com/operator-workshop/scripts/examine/wire"
)

// A writeFault disturbs the writes for one sample.
type writeFault struct {
	name   string
	moment proxy.Moment
	do     proxy.Action
	fast   bool
	note   string // why others do not progress
	verbs  []string
	lasts  bool // nothing changes, except the number of tries
}

// waits describes Retry-After for operators with one worker.
const waits = " (client-go itself sends such a request again, up to 10 times, and meanwhile its worker handles " +
	"nothing else: MaxConcurrentReconciles)"

// overObjects are writes that a real API server can answer with a conflict. It answers a create with AlreadyExists
// instead, and only when the object exists.
var overObjects = []string{wire.Update, wire.Patch, wire.Apply}

var writeFaults = []writeFault{
	{"500 Internal Server Error", proxy.Before, proxy.Refuse(500, 0), true, "", wire.Writes, true},
	{"503 Service Unavailable", proxy.Before, proxy.Refuse(503, 0), false, "", wire.Writes, true},
	{"503 with Retry-After", proxy.Before, proxy.Refuse(503, time.Second), false, waits, wire.Writes, false},
	{"a lost response", proxy.After, proxy.Drop(), true, "", wire.Writes, false},
	{"409 Conflict", proxy.Before, proxy.Refuse(409, 0), false, "", overObjects, false},
	{"429 Too Many Requests", proxy.Before, proxy.Refuse(429, 0), false, "", wire.Writes, true},
	{"429 with Retry-After", proxy.Before, proxy.Refuse(429, time.Second), false, waits, wire.Writes, false},
	{"2 s more for each write", proxy.Before, proxy.Delay(2 * time.Second), false, "", wire.Writes, false},
}

// A disturbance is one of the trials of an experiment; fast ones also run with FAST=1.
type disturbance struct {
	name string
	fast bool
	run  func(t *trial) (Finding, error)
}

// apiFaults disturbs the requests and answers between the operator and the API server, the greatest risk first.
func apiFaults(r *run) error {
	var all []disturbance
	if err := r.findRestored(); err != nil {
		return err
	}
	hasChild := len(r.owns()) > 0
	if hasChild {
		for _, w := range watchFaults {
			all = append(all, disturbance{w.name, w.fast, func(t *trial) (Finding, error) { return t.watchesLost(w) }})
		}
		all = append(all, disturbance{"watches that freeze", false, (*trial).watchesFrozen})
		for _, p := range pasts {
			all = append(all, disturbance{p.name, p.fast, func(t *trial) (Finding, error) { return t.lags(p) }})
		}
	}
	var logs []failureLog
	for _, f := range writeFaults {
		all = append(all, disturbance{f.name, f.fast, func(t *trial) (Finding, error) { return t.writesFail(f, &logs) }})
	}
	if hasChild { // at the end, because watches begin again only some time later
		all = append(all, disturbance{"an API server that is killed and restarted", false, (*trial).apiServerKilled})
	}
	for n := range all {
		all[n].name = "recovers from " + all[n].name
	}
	err := r.each("faults", all)
	if err == nil && len(logs) > 0 {
		short, once := judgeLogs(logs)
		r.add("its log stays short while writes fail", short)
		if short.Verdict == Passed {
			r.add("an error that stays is logged once", once)
		}
	}
	return err
}

// each carries out disturbances until the time is over. With FAST=1, it carries out only the fast ones.
func (r *run) each(what string, all []disturbance) error {
	left := 0
	for _, d := range all {
		if r.target.Fast && !d.fast || r.late() {
			left++
		} else if err := r.check(d.name, d.run); err != nil {
			return err
		}
	}
	r.leftOut(what, left, len(all))
	return nil
}

// window is how long writes are disturbed.
const window = 4 * time.Second

// A watched holds the operator's writes in a window.
type watched struct {
	begin, end time.Time
	entries    []ledger.Entry
	log        repeated
}

// watch records the operator's writes and its log in a window, which may already have begun. On a slow machine the short
// waits of an exponential backoff fill the first window, so watch waits for a second one before it believes in a hot loop.
func (t *trial) watch(begin time.Time, mark int) (w watched, err error) {
	for range 2 {
		p := t.operator.Process()
		printed := p.Printed()
		err = fixture.Pause(t.Ctx, window/2-time.Since(begin))
		early := p.OutputSince(printed)
		printed = p.Printed()
		err = errors.Join(err, fixture.Pause(t.Ctx, window-time.Since(begin)))
		w = watched{begin, time.Now(), t.Writes(mark), mostRepeated(early, p.OutputSince(printed), t.Namespace)}
		if err != nil || !w.hot() && !w.log.tooOften() {
			break
		}
		begin, mark = time.Now(), t.Mark()
	}
	return w, err
}

func (w watched) String() string {
	text := fmt.Sprintf("%d writes in %.1f s", len(w.entries), w.end.Sub(w.begin).Seconds())
	if n := w.atOnce(); n > 2 && !w.hot() {
		text += fmt.Sprintf(", up to %d of them at once (a reconcile tries again by itself, as retry.RetryOnConflict does)",
			n)
	}
	return text
}

// Within a reconcile an operator may try a few times at once, as retry.RetryOnConflict does. Tries with a shorter
// pause than burst form one burst.
const burst = 200 * time.Millisecond

// hot reports whether there were more tries than a work queue with exponential backoff makes. From 5 ms on, such a
// queue makes about 10 tries in 4 s, and at most 2 of them in the second half. hot judges only that half, for each
// object separately: a burst that does not end is hot, and so are many bursts. Several keys of a queue can demand the
// same object, each with backoff: then there are many bursts, but far fewer tries than in the first half.
func (w watched) hot() bool {
	early, tries := w.tries()
	for what, times := range tries {
		starts, longest := burstsOf(times)
		if longest > endless || (len(starts) > 4 || longest > 8) && len(times)*3 > early[what] {
			return true
		}
	}
	return false
}

// endless is a length of bursts that no reconcile reaches when it tries again by itself. A loop without backoff does, also when
// other programs leave it less of the processor than before.
const endless = 50

// tries returns, for each object, how many tries there were in the first half, and the times of those in the second.
func (w watched) tries() (early map[string]int, late map[string][]time.Time) {
	early, late = map[string]int{}, map[string][]time.Time{}
	for _, e := range w.entries {
		what := e.FullResource() + " " + e.Name
		if e.Start.After(w.end.Add(-window / 2)) {
			late[what] = append(late[what], e.Start)
		} else {
			early[what]++
		}
	}
	return early, late
}

// atOnce is the length of the longest burst of refused tries in the second half, where backoff makes no bursts.
func (w watched) atOnce() (most int) {
	w.entries = slices.DeleteFunc(slices.Clone(w.entries), func(e ledger.Entry) bool {
		return e.Code < http.StatusBadRequest
	})
	_, tries := w.tries()
	for _, times := range tries {
		_, longest := burstsOf(times)
		most = max(most, longest)
	}
	return most
}

// burstsOf returns the times at which the bursts of some tries begin, and the number of tries in the longest burst.
func burstsOf(times []time.Time) (starts []time.Time, longest int) {
	length := 0
	for n, at := range times {
		if n == 0 || at.Sub(times[n-1]) > burst {
			starts, length = append(starts, at), 0
		}
		length++
		longest = max(longest, length)
	}
	return starts, longest
}

// writesFail disturbs the writes for one sample, creates another sample meanwhile, and ends the disturbance.
func (t *trial) writesFail(f writeFault, logs *[]failureLog) (Finding, error) {
	fault := t.Everywhere(proxy.Rule{Name: f.name, Moment: f.moment, Do: f.do,
		Match: ledger.Match{Namespace: t.scope(), Verbs: f.verbs, Except: ledger.Housekeeping}})
	printed := t.operator.Process().Printed()
	if err := t.create(); err != nil {
		return Finding{}, err
	}
	ctx, cancel := t.clock.Within(t.Ctx, 20*time.Second, clock.ErrLate)
	defer cancel()
	if err := fault.Await(ctx, 1); err != nil {
		return skipped("nothing was disturbed: %v", err), nil
	}
	begin, mark := time.Now(), t.Mark()
	other, err := t.otherServed(f.note != "")
	if err != nil {
		return failed("while the writes for one sample got %s, %v%s", f.name, err, f.note).
			with(lines(t.Writes(0))...), nil
	}
	if time.Since(begin) > window/2 { // a busy operator made its first tries, after short waits, only now
		begin, mark = time.Now(), t.Mark()
	}
	w, err := t.watch(begin, mark)
	if err != nil {
		return Finding{}, err
	}
	l := failureLog{window: w.log}
	if f.lasts {
		l.whole = mostRepeated("", t.operator.Process().OutputSince(printed), t.Namespace)
	}
	*logs = append(*logs, l)
	fault.Release()
	begin, mark = time.Now(), t.Mark()
	if err := t.Eventually(40*time.Second, t.asUndisturbed); err != nil {
		return t.notRecovered("40 s after its writes worked again", mark, err), nil
	}
	if w.hot() {
		return failed("a hot loop: %v, without exponential backoff", w).with(lines(w.entries)...), nil
	}
	return t.worksAgain(passed("%v%s; as undisturbed %.1f s after the end", w, other, time.Since(begin).Seconds()), nil)
}

// notRecovered is the finding about an end that is not that of an undisturbed run.
func (t *trial) notRecovered(when string, mark int, err error) Finding {
	var different differenceError
	since := t.Writes(mark)
	end := fmt.Sprintf("%s, and after %d further writes, the end is not that of an undisturbed run", when, len(since))
	if errors.As(err, &different) {
		return failed("%s", end).with(different...)
	}
	return failed("%s: %v", end, err).with(lines(since)...)
}

// otherServed waits until another sample is ready in a namespace that is not disturbed. Where each write may wait for the
// client itself, it is enough that the operator works for this sample.
func (t *trial) otherServed(waits bool) (what string, err error) {
	if t.serial() {
		return "", nil
	}
	other, err := t.newTrial(t.Ctx)
	if err != nil {
		return "", err
	}
	defer other.clean()
	if err := other.serve(); err != nil && waits && len(other.Writes(0)) > 0 {
		return ", while the work for another sample went on", inTime(t.Ctx, nil)
	} else if err != nil {
		return "", fmt.Errorf("another sample did not progress: %w", err)
	}
	return ", while another sample got ready", nil
}
