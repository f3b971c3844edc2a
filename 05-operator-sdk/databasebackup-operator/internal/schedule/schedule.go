// Package schedule computes when a cron schedule runs. It has no clock: all functions take the time.
//
// The parser and the arithmetic come from robfig/cron, which CronJobs use too. A schedule has the same meaning as in a
// CronJob: on a day of 23 hours the slots in the missing hour are skipped, and on a day of 25 hours the slots in the
// repeated hour come twice. This package adds the rules that the CronJob controller adds to the library: which
// schedules are refused, and which missed slot runs.
package schedule

import (
	"errors"
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // the operator's image has no time zones

	"github.com/robfig/cron/v3"
)

// A Schedule is a set of minutes. Only Parse makes one.
type Schedule struct{ cron *cron.SpecSchedule }

// parser takes five fields, or a word like @daily.
var parser = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)

// probe is a time for Parse: a schedule without a slot after it never runs.
var probe = time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC)

// A Fault says why a schedule is invalid.
type Fault struct {
	// Field is the field of the spec that is wrong, schedule or timeZone, and Value is its value.
	Field, Value string
	// Why is the reason, and what to do.
	Why string
}

func (f *Fault) Error() string { return fmt.Sprintf("spec.%s %q %s", f.Field, f.Value, f.Why) }

// Parse reads a schedule in a zone of the IANA database; no zone is UTC. The error is a *Fault: Parse cannot read the
// schedule or the zone, or the date never comes.
func Parse(text, zone string) (Schedule, error) {
	fault := func(format string, args ...any) (Schedule, error) {
		return Schedule{}, &Fault{"schedule", text, fmt.Sprintf(format, args...)}
	}
	// The parser reads zones, and panics on some: https://github.com/robfig/cron/issues/554.
	if strings.Contains(text, "TZ=") {
		return fault("must not contain TZ= or CRON_TZ=: name the zone in spec.timeZone")
	}
	location, err := time.LoadLocation(zone)
	if err != nil || strings.EqualFold(zone, "local") {
		return Schedule{}, &Fault{"timeZone", zone, "is not known: use a name of the IANA database, like Europe/Berlin"}
	}
	parsed, err := parser.Parse(text)
	if err != nil {
		return fault("cannot be read: %s: use minute 0-59, hour 0-23, day of month 1-31, month 1-12 or JAN-DEC, "+
			"day of week 0-6 or SUN-SAT, or a word like @daily", err)
	}
	spec, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		// @every counts from the moment when a program started, which is not the same after a restart.
		return fault("has no fixed minutes: use five fields, as in */5 * * * *")
	}
	spec.Location = location
	s := Schedule{spec}
	if s.Next(probe).IsZero() {
		return fault("never comes: no year has that date: choose a day that its months have")
	}
	return s, nil
}

// Next returns the first slot after a time, in UTC, zero for none.
func (s Schedule) Next(after time.Time) time.Time {
	next := s.cron.Next(after.UTC())
	if next.IsZero() { // the library stops after five years; around the year 2100 February 29 is eight years apart
		next = s.cron.Next(after.UTC().AddDate(4, 0, 0))
	}
	return next
}

// windows are the spans in which Latest searches, so that a schedule of every minute costs as little after a
// year of downtime as after an hour.
var windows = []time.Duration{time.Hour, 24 * time.Hour, 32 * 24 * time.Hour, 367 * 24 * time.Hour}

// Latest returns the newest slot that is after a time and not after now, in UTC, zero for none.
func (s Schedule) Latest(after, now time.Time) (newest time.Time) {
	from := after
	for _, window := range windows {
		start := now.Add(-window)
		if first := s.Next(start); start.After(after) && !first.IsZero() && !first.After(now) {
			from = start
			break
		}
	}
	for slot := s.Next(from); !slot.IsZero() && !slot.After(now); slot = s.Next(slot) {
		newest = slot
	}
	return newest
}

// longestPeriod is the longest time between two slots of any schedule: February 29 around the year 2100.
const longestPeriod = 8

// Period returns the longer one of two times: between the newest slot and the next, and between the newest slot and the
// one before it. A schedule of working days has 24 hours on most days, and 72 hours around the weekend.
func (s Schedule) Period(now time.Time) time.Duration {
	newest := s.Latest(now.AddDate(-longestPeriod, 0, 0), now)
	before := s.Latest(newest.AddDate(-longestPeriod, 0, -1), newest.Add(-time.Second))
	return max(s.Next(now).Sub(newest), newest.Sub(before))
}

// ErrMissed is returned with the slot that comes too late.
var ErrMissed = errors.New("the deadline for its start has passed")

// Tolerance is how far in the future the last slot may be before the clock that wrote it is not trusted.
const Tolerance = 24 * time.Hour

// Due returns the slot that must run now: the newest slot after the last one, unless it is older than the deadline (0
// is none). Slots before it are skipped. The result is zero when no slot must run. With ErrMissed, the result is the
// newest slot after the last one, which is too late to run.
//
// If the last slot is in the future, the clock was set back: nothing is due until the clock has reached it, so
// that no slot runs twice. If it is more than a day ahead, a wrong clock wrote it, and now replaces it. A caller that
// stores the last slot must then store now instead. Otherwise the last slot is now at each call, and nothing is ever
// due.
func (s Schedule) Due(last, now time.Time, deadline time.Duration) (time.Time, error) {
	if last.After(now.Add(Tolerance)) {
		last = now
	}
	slot := s.Latest(last, now)
	if !slot.IsZero() && deadline > 0 && now.Sub(slot) >= deadline {
		return slot, ErrMissed
	}
	return slot, nil
}

// Coming returns the next slot that Due can return after now, given the last.
func (s Schedule) Coming(last, now time.Time) time.Time {
	if last.After(now) && !last.After(now.Add(Tolerance)) {
		now = last
	}
	return s.Next(now)
}
