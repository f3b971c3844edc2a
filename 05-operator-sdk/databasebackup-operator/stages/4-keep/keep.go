// Package backup decides which backups stay.
package backup

import (
	"slices"
	"time"
)

// A Backup is a file, the time when its data were read, and whether a test restore of it succeeded.
type Backup struct {
	Name     string
	Time     time.Time
	Verified bool
}

// Remove returns the backups to delete so that about count are left. The order of all is the order in a directory.
func Remove(all []Backup, count int) (remove []Backup) {
	newest := slices.SortedFunc(slices.Values(all), func(a, b Backup) int { return b.Time.Compare(a.Time) })
	good := slices.IndexFunc(newest, func(b Backup) bool { return b.Verified })
	for at, b := range newest {
		if at >= count && at != good {
			remove = append(remove, b)
		}
	}
	return remove
}
