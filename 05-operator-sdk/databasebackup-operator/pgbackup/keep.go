package main

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// State says how reliable a backup is.
type State string

const (
	// StateGood is a dump of the recorded size that passed its last verification, Archive or Restore.
	StateGood State = "Good"
	// StateUnverified is a dump of the recorded size that was not verified.
	StateUnverified State = "Unverified"
	// StateUnverifiable is a dump of the recorded size whose last verification did not pass, without evidence against
	// the dump: the scratch server may lack a locale, a dictionary, an extension, a role, space or memory.
	StateUnverifiable State = "Unverifiable"
	// StateBroken is a dump with evidence against it: another size or checksum than was recorded, or pg_restore cannot
	// read it.
	StateBroken State = "Broken"
	// StateMissing are facts whose dump is gone.
	StateMissing State = "Missing"
	// StateUnknown is a dump without facts: a user put it there, or its facts were removed.
	StateUnknown State = "Unknown"
)

// Entry has the properties of a backup that retention uses and that a result lists.
type Entry struct {
	Name  string    `json:"name"`
	State State     `json:"state"`
	Time  time.Time `json:"-"` // of the data: when the dump began
}

// Policy says which backups stay. With the number 0 a rule keeps no backup; a MaxAgeDays of 0 sets no limit.
type Policy struct {
	KeepLast, KeepDaily, KeepWeekly, KeepMonthly int
	MaxAgeDays                                   int
}

// Keep divides backups into those that are kept and those that are removed, each newest first.
//
//   - Good backups are kept by the rules: the KeepLast newest, and the newest of each of the last KeepDaily days,
//     KeepWeekly weeks (Monday to Sunday) and KeepMonthly months that have one, in the location.
//   - Unverified and unverifiable backups are kept by the same rules. They are counted separately, so they replace
//     no good backup, and no good backup replaces them.
//   - The KeepLast newest broken and missing backups are kept, unless a newer backup is good.
//   - Backups that are older than MaxAgeDays calendar days are removed, even if these rules would keep them.
//   - The newest good backup is never removed. While no backup is good, the newest unverified one is never removed.
//   - The newest dump is never removed, even if it is broken: perhaps a part of it can be restored.
//   - Unknown backups are never removed, and are not counted.
func Keep(entries []Entry, policy Policy, now time.Time, location *time.Location) (keep, remove []Entry) {
	sorted := newestFirst(entries)
	with := func(states ...State) (found []Entry) {
		for _, e := range sorted {
			if slices.Contains(states, e.State) {
				found = append(found, e)
			}
		}
		return found
	}
	good, unverified, failed := with(StateGood), with(StateUnverified, StateUnverifiable), with(StateBroken, StateMissing)
	stays := map[string]bool{}
	policy.mark(stays, good, location)
	policy.mark(stays, unverified, location)
	for _, e := range failed[:min(policy.KeepLast, len(failed))] {
		stays[e.Name] = len(good) == 0 || e.Time.After(good[0].Time)
	}
	if policy.MaxAgeDays > 0 {
		oldest := now.In(location).AddDate(0, 0, -policy.MaxAgeDays)
		for _, e := range sorted {
			stays[e.Name] = stays[e.Name] && !e.Time.Before(oldest)
		}
	}
	if last := slices.Concat(good[:min(1, len(good))], unverified[:min(1, len(unverified))]); len(last) > 0 {
		stays[last[0].Name] = true
	}
	if there := with(StateGood, StateUnverified, StateUnverifiable, StateBroken); len(there) > 0 {
		stays[there[0].Name] = true
	}
	for _, e := range sorted {
		if stays[e.Name] || e.State == StateUnknown {
			keep = append(keep, e)
		} else {
			remove = append(remove, e)
		}
	}
	return keep, remove
}

func newestFirst(entries []Entry) []Entry {
	return slices.SortedFunc(slices.Values(entries), func(a, b Entry) int {
		return cmp.Or(b.Time.Compare(a.Time), cmp.Compare(b.Name, a.Name))
	})
}

// mark records which of these backups, newest first, the counting rules keep.
func (p Policy) mark(stays map[string]bool, newestFirst []Entry, location *time.Location) {
	for _, rule := range []struct {
		count  int
		period func(time.Time, Entry) string
	}{
		{p.KeepLast, func(_ time.Time, e Entry) string { return e.Name }},
		{p.KeepDaily, func(t time.Time, _ Entry) string { return t.Format(time.DateOnly) }},
		{p.KeepWeekly, func(t time.Time, _ Entry) string { return fmt.Sprint(t.ISOWeek()) }},
		{p.KeepMonthly, func(t time.Time, _ Entry) string { return t.Format("2006-01") }},
	} {
		seen := map[string]bool{}
		for _, e := range newestFirst {
			period := rule.period(e.Time.In(location), e)
			if seen[period] || len(seen) == rule.count {
				continue
			}
			seen[period], stays[e.Name] = true, true
		}
	}
}
