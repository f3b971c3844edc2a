package examine

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"example.com/operator-workshop/scripts/examine/fixture"
	"example.com/operator-workshop/scripts/examine/ledger"
	"example.com/operator-workshop/scripts/examine/loop"
	"example.com/operator-workshop/scripts/examine/state"
	"example.com/operator-workshop/scripts/examine/wire"
)

// creation counts the requests until the sample is ready.
func creation(r *run) error {
	var requests, everywhere []ledger.Entry
	var records []loop.Record
	err := r.check("the sample gets ready", func(t *trial) (Finding, error) {
		begin, timeline := time.Now(), t.record()
		err := t.serve()
		r.report.Creation, records = timeline()
		if err != nil {
			return Finding{}, err
		}
		took := time.Since(begin)
		requests, everywhere = t.fixture.Ledger.Entries(t.Mine(0)), t.readsEverywhere()
		writes := only(requests, wire.Writes...)
		return passed("%d requests in %.1f s, %d of them writes; the least possible number of writes is %d: one for each "+
			"object and each status that they changed", len(requests), took.Seconds(), len(writes), leastWrites(writes)).
			with(counts(requests)...), nil
	})
	if err != nil || requests == nil {
		return err
	}
	writes := only(requests, wire.Writes...)
	unchanged := slices.DeleteFunc(slices.Clone(writes), func(e ledger.Entry) bool { return e.Effect != ledger.Same })
	blind := slices.DeleteFunc(slices.Clone(unchanged), func(e ledger.Entry) bool { return cameLater(records, e) })
	r.noneBut("no write changes nothing", unchanged, blind, "%d of its writes were accepted and changed nothing",
		"before the operator got the event of its last write")
	refused := slices.DeleteFunc(slices.Clone(writes),
		func(e ledger.Entry) bool { return e.Code != http.StatusConflict })
	creates := only(refused, wire.Create)
	conflicts := slices.DeleteFunc(refused, func(e ledger.Entry) bool { return e.Verb == wire.Create })
	own := slices.DeleteFunc(slices.Clone(conflicts), func(e ledger.Entry) bool { return causedByOthers(e, writes, records) })
	r.noneBut("no conflict with itself", conflicts, own, "%d of its writes were refused with 409: it worked on an old state",
		"after a change of the object by others")
	known := slices.DeleteFunc(slices.Clone(creates), func(e ledger.Entry) bool { return firstLater(records, e) })
	r.noneBut("it does not create what exists", creates, known, "%d requests create what exists: it did not look first",
		"before the operator got the first event of the object")
	r.none("reads come from the cache", append(only(requests, wire.Get, wire.List), everywhere...),
		"%d reads went to the API server after the caches had synced")
	return nil
}

// leastWrites is the number of objects, and statuses of objects, that some writes changed.
func leastWrites(writes []ledger.Entry) int {
	changed := map[objectKey]bool{}
	for _, e := range writes {
		if e.Committed() {
			changed[objectKey{e.FullResource(), e.Namespace, e.Name}] = true
		}
	}
	return len(changed)
}

// causedByOthers reports whether others changed an object between the operator's last write before a refused write, and its
// next write: the operator got the event.
func causedByOthers(refused ledger.Entry, writes []ledger.Entry, records []loop.Record) bool {
	object := func(group, resource, namespace, name string) bool {
		return group == refused.Group && resource == refused.Resource && namespace == refused.Namespace && name == refused.Name
	}
	own, after, before := map[uint64]bool{}, uint64(0), uint64(math.MaxUint64)
	for _, e := range writes {
		version, err := strconv.ParseUint(e.ResourceVersion, 10, 64)
		switch {
		case err != nil || !e.Committed() || !object(e.Group, e.Resource, e.Namespace, e.Name):
			continue
		case e.N < refused.N:
			after = max(after, version)
		default:
			before = min(before, version)
		}
		own[version] = true
	}
	return slices.ContainsFunc(records, func(r loop.Record) bool {
		version, err := strconv.ParseUint(r.ResourceVersion, 10, 64)
		return err == nil && r.Is == loop.Event && object(r.Group, r.Resource, r.Namespace, r.Name) && !own[version] &&
			after < version && version < before
	})
}

// cameLater reports whether the operator got the event of an object's last change only after a write that changed
// nothing: its cache was older than the object, which happens more often on a busy machine.
func cameLater(records []loop.Record, write ledger.Entry) bool {
	later := false
	for _, r := range records {
		if r.Is != loop.Event || r.UID != write.UID || r.ResourceVersion != write.ResourceVersion {
			continue
		}
		if r.N < write.N {
			return false
		}
		later = true
	}
	return later
}

// firstLater reports whether the operator got the first event of an object only after a create that was refused because
// the object exists: its cache did not have the object, which it had created just before.
func firstLater(records []loop.Record, create ledger.Entry) bool {
	later := false
	for _, r := range records {
		if r.Is != loop.Event || r.Group != create.Group || r.Resource != create.Resource ||
			r.Namespace != create.Namespace || r.Name != create.Name {
			continue
		}
		if r.N < create.N {
			return false
		}
		later = true
	}
	return later
}

// readsEverywhere are the operator's reads outside all namespaces, which it made during the only trial. It leaves out
// the lists of informers, after which a watch of the same resource follows.
func (t *trial) readsEverywhere() []ledger.Entry {
	if t.target.cluster {
		return nil // mine has them
	}
	watched := map[string]int{} // the ID of the last watch
	users := []string{t.operator.user.Name}
	for _, e := range t.fixture.Ledger.Entries(ledger.Match{Users: users, After: t.Start, Verbs: []string{wire.Watch}}) {
		watched[e.FullResource()+" "+e.Namespace] = e.ID
	}
	return t.fixture.Ledger.Entries(ledger.Match{Users: users, After: t.Start, Verbs: []string{wire.Get, wire.List},
		Except: ledger.Housekeeping, Where: func(e ledger.Entry) bool {
			return e.Namespace == "" && e.Resource != "" && watched[e.FullResource()+" "] < e.ID && !t.ofChild(e)
		}})
}

// mostSteps is how many lines of a creation are kept.
const mostSteps = 200

// record records the loop until steps is called: the events that the operator received, the requests that it sent,
// and beside them the lines that it printed.
func (t *trial) record() (steps func() (text []string, records []loop.Record)) {
	var mu sync.Mutex
	var records []loop.Record
	t.fixture.Ledger.Copy(func(r loop.Record) {
		mu.Lock()
		defer mu.Unlock()
		records = append(records, r)
	})
	p, begun := t.operator.Process(), "" // begun is the beginning of a line
	p.CopyOutput(func(text string) {
		mu.Lock()
		defer mu.Unlock()
		lines := strings.Split(begun+text, "\n")
		begun = lines[len(lines)-1]
		for _, line := range lines[:len(lines)-1] {
			records = append(records, loop.Record{Is: loop.Note, Time: time.Now(), By: loop.Client{Name: "log"},
				Note: shortened(line, 300)})
		}
	})
	return func() ([]string, []loop.Record) {
		t.fixture.Ledger.Copy(nil)
		p.CopyOutput(nil)
		mu.Lock()
		defer mu.Unlock()
		slices.SortStableFunc(records, func(a, b loop.Record) int {
			return cmp.Or(a.Time.Compare(b.Time), a.N-b.N)
		})
		var text strings.Builder
		p := loop.Printer{W: &text}
		for _, r := range records {
			_ = p.Print(r)
		}
		_ = p.Close()
		all := strings.Split(strings.TrimSpace(text.String()), "\n")
		if more := len(all) - mostSteps; more > 0 {
			all = append(all[:mostSteps], fmt.Sprintf("… %d more lines", more))
		}
		return all, records
	}
}

// none records the finding that there are no such requests.
func (r *run) none(title string, wrong []ledger.Entry, what string) {
	r.add(title, noneOf(wrong, what))
}

func noneOf(wrong []ledger.Entry, what string) Finding {
	if len(wrong) == 0 {
		return passed("none")
	}
	return failed(what, len(wrong)).with(lines(wrong)...)
}

// noneBut is none for some of all requests; the others have a reason.
func (r *run) noneBut(title string, all, wrong []ledger.Entry, what, reason string) {
	if len(wrong) == 0 && len(all) > 0 {
		r.add(title, passed("none, apart from %d %s", len(all), reason).with(lines(all)...))
		return
	}
	r.none(title, wrong, what)
}

func only(entries []ledger.Entry, verbs ...string) []ledger.Entry {
	return slices.DeleteFunc(slices.Clone(entries), func(e ledger.Entry) bool { return !slices.Contains(verbs, e.Verb) })
}

// counts counts requests by verb and resource.
func counts(entries []ledger.Entry) (all []string) {
	number := map[string]int{}
	for _, e := range entries {
		number[e.Verb+" "+e.FullResource()]++
	}
	for _, what := range slices.Sorted(maps.Keys(number)) {
		all = append(all, fmt.Sprintf("%d %s", number[what], what))
	}
	return all
}

// steadyState looks for requests while nothing changes.
func steadyState(r *run) error {
	window := 15 * time.Second
	if r.target.Fast {
		window = 4 * time.Second
	}
	window = r.untilResync(window, time.Minute)
	return r.check("no request while nothing happens", func(t *trial) (Finding, error) {
		if err := t.rest(); err != nil {
			return Finding{}, err
		}
		found, err := t.requestsIn(window)
		if err != nil {
			return Finding{}, err
		}
		later := ""
		if text := progress(t.asUndisturbed()); len(found) > 0 && text != "" { // it was not in steady state yet
			later = "; " + text
			if found, err = t.requestsIn(window); err != nil {
				return Finding{}, err
			}
		}
		if len(found) == 0 {
			return passed("no request in %v, leases apart%s", window, later), nil
		}
		most, period := rhythm(found)
		if t.period == 0 && period >= time.Second {
			t.run.period = period
		}
		if polled := t.unwatched(only(found, wire.Get, wire.List)); len(polled) > 0 {
			most += "; it reads without a watch: " + strings.Join(polled, ", ")
		}
		return failed("%d requests in %v, %d of them writes: %s%s", len(found), window, len(only(found, wire.Writes...)),
			most, later).with(lines(found)...), nil
	})
}

// requestsIn waits, and returns the requests of the operator in this time, without leases.
func (t *trial) requestsIn(window time.Duration) ([]ledger.Entry, error) {
	mark := t.Mark()
	if err := fixture.Pause(t.Ctx, window); err != nil {
		return nil, err
	}
	if !t.operator.Running() {
		return nil, errors.New("the operator did not stay alive")
	}
	return t.fixture.Ledger.Entries(ledger.Match{Users: []string{t.operator.user.Name}, After: mark,
		Except: ledger.Housekeeping, Where: func(e ledger.Entry) bool {
			return e.Verb != wire.Watch && e.Resource != "" && !t.isLock(e)
		}}), nil
}

// rhythm describes how often the most frequent of some requests came, and returns its period: 0 when it came once.
// Several requests within a reconcile count as one burst.
func rhythm(entries []ledger.Entry) (text string, period time.Duration) {
	times := map[string][]time.Time{}
	most := ""
	for _, e := range entries {
		what := e.Verb + " " + e.FullResource()
		if times[what] = append(times[what], e.Start); len(times[what]) > len(times[most]) {
			most = what
		}
	}
	n := len(times[most])
	starts, _ := burstsOf(times[most])
	if len(starts) < 2 && times[most][n-1].Sub(times[most][0]) > time.Second {
		starts = times[most] // a loop without pauses
	}
	switch {
	case n == 1:
		return most + " once", 0
	case len(starts) < 2:
		return fmt.Sprintf("%s %d times at once", most, n), 0
	}
	period = starts[len(starts)-1].Sub(starts[0]) / time.Duration(len(starts)-1)
	if text = fmt.Sprintf("%s every %v", most, period.Round(time.Millisecond)); n > len(starts) {
		text += fmt.Sprintf(", about %d times each", (n+len(starts)/2)/len(starts))
	}
	return text, period
}

// restart starts the operator over objects in their desired state. After a failure, restart observes another sample for
// the same time, without a restart of the operator: if that sample changes, too, the failure proves nothing.
func restart(r *run) error {
	return r.judge("a restarted operator writes nothing needless", func() (Finding, error) {
		begin := time.Now()
		f, err := r.try((*trial).restartsQuietly)
		if f.Verdict != Failed && !errors.As(err, new(differenceError)) {
			return f, err
		}
		took := time.Since(begin)
		progress, progressErr := r.try(func(t *trial) (Finding, error) {
			if err := errors.Join(t.serve(), fixture.Pause(t.Ctx, took)); err != nil {
				return Finding{}, err
			}
			return skipped("%s", progress(t.asUndisturbed())), nil
		})
		if progressErr == nil && progress.What != "" {
			return progress, nil
		}
		return f, err
	})
}

// progress returns how a sample, long after it was ready, differs from the end of the undisturbed runs. The result is
// empty when nothing differs.
func progress(asUndisturbed error) string {
	var different differenceError
	if !errors.As(asUndisturbed, &different) {
		return ""
	}
	return "the sample made progress after it was ready, so the lab has learned its end state too early: name its last " +
		"state in READY= (" + shortened(different[0], 200) + ")"
}

// restartsQuietly starts the operator again, and twice if the operator writes values of its process: the second start
// shows a value that comes back.
func (t *trial) restartsQuietly() (Finding, error) {
	if err := t.rest(); err != nil {
		return Finding{}, err
	}
	before, err := t.observeWithout(restless)
	if err != nil {
		return Finding{}, err
	}
	mark, states := t.Mark(), []state.State{before}
	for range 2 {
		again := t.Mark()
		after, err := t.startedAgain()
		if err != nil {
			return Finding{}, err
		}
		writes := t.Writes(again)
		if len(writes) == 0 {
			break
		}
		if len(t.Changes(again)) < len(writes) || !renewed(after, states, t.varying) {
			return failed("%d writes over an object that was as it should be", len(writes)).with(lines(writes)...).
				with(state.Compare(after, states[len(states)-1], nil, "before it")...), nil
		}
		states = append(states, after)
	}
	if len(states) > 1 {
		writes := t.Writes(mark)
		return passed("%d writes for the sample, all of values that live as long as the process",
			len(writes)).with(lines(writes)...), nil
	}
	return passed("no write for the sample in the %v after the restart", t.afterRestart()), nil
}

// startedAgain restarts the operator, waits for its work, and returns the state, which is that of an undisturbed run.
func (t *trial) startedAgain() (state.State, error) {
	t.operator.Kill()
	if err := t.operator.start(t.Ctx); err != nil {
		return nil, err
	}
	if err := fixture.Pause(t.Ctx, t.afterRestart()); err != nil {
		return nil, err
	}
	if err := t.asUndisturbed(); err != nil {
		return nil, err
	}
	return t.observeWithout(restless)
}

// renewed reports whether a state differs from the last of some earlier states only in paths that vary between
// undisturbed runs, by values that no earlier state has. The items of a list are a set: their order does not count.
func renewed(now state.State, earlier []state.State, varying map[string]bool) bool {
	before := earlier[len(earlier)-1]
	if maps.Equal(before, now) || len(state.Differences(now, before, varying)) > 0 {
		return false
	}
	was, is, seen := setsOf(before), setsOf(now), setsOf(earlier...)
	for path, value := range now {
		set := setOf(path)
		cameBack := seen[set][value] && !was[set][value]
		if value != before[path] && (cameBack || maps.Equal(was[set], is[set])) {
			return false
		}
	}
	return true
}

// itemNumber matches the number of an item in a list whose items have no names.
var itemNumber = regexp.MustCompile(`\[\d+\]`)

// setOf is a path without the numbers of items.
func setOf(path string) string { return itemNumber.ReplaceAllString(path, "[]") }

// setsOf are the values of some states, by the paths of their sets.
func setsOf(states ...state.State) map[string]map[string]bool {
	sets := map[string]map[string]bool{}
	for _, s := range states {
		for path, value := range s {
			if sets[setOf(path)] == nil {
				sets[setOf(path)] = map[string]bool{}
			}
			sets[setOf(path)][value] = true
		}
	}
	return sets
}
