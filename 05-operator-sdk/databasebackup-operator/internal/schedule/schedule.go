// Package schedule says when a schedule of cron comes. It has no clock: all functions take the time.
//
// A slot is a minute whose wall clock, in the schedule's zone, matches the schedule. So on the day that has 23
// hours a slot in the missing hour does not come, and on the day that has 25 hours a slot in the repeated hour
// comes twice. That is what a CronJob of Kubernetes does. Two cases differ, where the library that CronJobs use
// strays from the wall clock: zones that shift by half an hour, and days that begin at one o'clock.
package schedule

import (
	"errors"
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // the operator's image has no time zones

	"github.com/robfig/cron/v3"
)

// A Schedule is a set of minutes. The zero value has none.
type Schedule struct {
	minute, hour, day, month, weekday uint64 // bits
	location                          *time.Location
}

// star is the bit that the parser sets in a field that is *.
const star = 1 << 63

// horizon is how far Next looks: February 29 is eight years apart around the year 2100.
const horizon = 8*366*24*time.Hour + 24*time.Hour

// probe is a time from which every schedule that ever comes has come before its horizon ends.
var probe = time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC)

// parser takes five fields, or a word like @daily.
var parser = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)

// A Fault is why there is no schedule.
type Fault struct {
	// Field is the field of the spec that is wrong, schedule or timeZone, and Value is what it says.
	Field, Value string
	// Why is the reason, and the cure.
	Why string
}

func (f *Fault) Error() string { return fmt.Sprintf("spec.%s %q %s", f.Field, f.Value, f.Why) }

// Parse reads a schedule in a zone of the IANA database; no zone is UTC. The error is a *Fault: the schedule or the
// zone cannot be read, or the date never comes.
func Parse(text, zone string) (Schedule, error) {
	wrong := func(format string, args ...any) (Schedule, error) {
		return Schedule{}, &Fault{"schedule", text, fmt.Sprintf(format, args...)}
	}
	// The parser reads zones, and panics on some: https://github.com/robfig/cron/issues/554.
	if strings.Contains(text, "TZ=") {
		return wrong("must not contain TZ= or CRON_TZ=: name the zone in spec.timeZone")
	}
	location, err := time.LoadLocation(zone)
	if err != nil || strings.EqualFold(zone, "local") {
		return Schedule{}, &Fault{"timeZone", zone, "is not known: use a name of the IANA database, like Europe/Berlin"}
	}
	parsed, err := parser.Parse(text)
	if err != nil {
		return wrong("cannot be read: %s: use minute 0-59, hour 0-23, day of month 1-31, month 1-12 or JAN-DEC, "+
			"day of week 0-6 or SUN-SAT, or a word like @daily", err)
	}
	spec, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		// @every counts from the moment when a program started, which is not the same after a restart.
		return wrong("has no fixed minutes: use five fields, as in */5 * * * *")
	}
	s := Schedule{minute: spec.Minute, hour: spec.Hour, day: spec.Dom, month: spec.Month, weekday: spec.Dow, location: location}
	if s.Next(probe).IsZero() {
		return wrong("never comes: no year has that date: choose a day that its months have")
	}
	return s, nil
}

// Next returns the first slot after a time, in UTC. It is zero when there is none within eight years.
func (s Schedule) Next(after time.Time) time.Time {
	if s.location == nil {
		return time.Time{}
	}
	for t := after.UTC().Truncate(time.Minute).Add(time.Minute); t.Sub(after) < horizon; {
		wall := t.In(s.location)
		switch {
		case !s.onDay(wall):
			t = skip(t, untilMidnight(wall))
		case s.hour&(1<<wall.Hour()) == 0:
			t = skip(t, 0)
		case s.minute&(1<<wall.Minute()) == 0:
			t = t.Add(time.Minute)
		default:
			return t
		}
	}
	return time.Time{}
}

// onDay reports whether the schedule comes on the day of a time. As cron has it, a day of the month and a day
// of the week that are both given need not both match.
func (s Schedule) onDay(wall time.Time) bool {
	if s.month&(1<<wall.Month()) == 0 {
		return false
	}
	day, weekday := s.day&(1<<wall.Day()) != 0, s.weekday&(1<<wall.Weekday()) != 0
	if s.day&star != 0 || s.weekday&star != 0 {
		return day && weekday
	}
	return day || weekday
}

// step divides all that zones have: offsets, shifts, and the times when they shift.
const step = 15 * time.Minute

// skip returns a later time, at least the next quarter of an hour, and at most about so much later.
func skip(t time.Time, most time.Duration) time.Time {
	return t.Add(max(most, step)).Truncate(step)
}

// untilMidnight is less than what is left of a day, also of one that is shorter than others.
func untilMidnight(wall time.Time) time.Duration {
	gone := time.Duration(wall.Hour())*time.Hour + time.Duration(wall.Minute())*time.Minute
	return 24*time.Hour - gone - 3*time.Hour
}

// windows are the spans in which Latest looks, so that a schedule of every minute costs as little after a
// year of downtime as after an hour.
var windows = []time.Duration{time.Hour, 24 * time.Hour, 32 * 24 * time.Hour, 367 * 24 * time.Hour, horizon}

// Latest returns the newest slot that is after a time and not after now, in UTC. It is zero when there is none.
func (s Schedule) Latest(after, now time.Time) time.Time {
	for _, window := range windows {
		from := now.Add(-window)
		last := !from.After(after)
		if last {
			from = after
		}
		var newest time.Time
		for slot := s.Next(from); !slot.IsZero() && !slot.After(now); slot = s.Next(slot) {
			newest = slot
		}
		if last || !newest.IsZero() {
			return newest
		}
	}
	return time.Time{}
}

// ErrMissed is returned with the slot that comes too late.
var ErrMissed = errors.New("the deadline for its start has passed")

// Tolerance is how far in the future the last slot may lie before the clock that wrote it is not believed.
const Tolerance = 24 * time.Hour

// Due returns the slot that shall run now: the newest one since the last, when it is not later than the
// deadline (0 is none). Slots before it are given up. It is zero when there is none. With ErrMissed, it is the
// newest slot since the last, and too late to run.
//
// A last slot in the future means that the clock was put back: nothing is due until the clock has reached it, so
// that no slot runs twice. More than a day ahead it was written by a clock that was wrong, and is taken for now. Who
// keeps the last slot must then keep now in its place: else it is now at each call, and nothing is ever due.
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
