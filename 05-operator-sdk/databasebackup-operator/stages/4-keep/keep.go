// Package backup decides which backups stay.
package backup

import (
	"slices"
	"time"
)

// A Snapshot is a line of restic's list: the name of its run, the time when its data were read, and whether it has the
// tag of a test restore that succeeded.
type Snapshot struct {
	Name     string
	Time     time.Time
	Verified bool
}

// Remove returns the snapshots to forget so that about count are left. The order of all is that of the repository.
func Remove(all []Snapshot, count int) (remove []Snapshot) {
	newest := slices.SortedFunc(slices.Values(all), func(a, b Snapshot) int { return b.Time.Compare(a.Time) })
	good := slices.IndexFunc(newest, func(s Snapshot) bool { return s.Verified })
	for at, s := range newest {
		if at >= count && at != good {
			remove = append(remove, s)
		}
	}
	return remove
}
