package backup

import (
	"slices"
	"testing"
	"time"
)

func TestRemove(t *testing.T) {
	day := func(n int, verified bool) Snapshot {
		moment := time.Date(2030, time.January, n, 2, 0, 0, 0, time.UTC)
		// Users chose these names: their order is not the order of the days.
		return Snapshot{Name: moment.Format("Mon-02"), Time: moment, Verified: verified}
	}
	good := []Snapshot{day(4, true), day(1, true), day(5, true), day(3, true), day(2, true)}
	unordered := slices.Clone(good)
	removed := func(all []Snapshot, count int) (days []int) {
		for _, b := range Remove(all, count) {
			days = append(days, b.Time.Day())
		}
		slices.Sort(days)
		return days
	}
	if got := removed(good, 3); slices.Contains(got, 5) {
		t.Errorf("the newest backup is removed: 5 backups, 3 stay, the days %v go", got)
	} else if !slices.Equal(got, []int{1, 2}) {
		t.Errorf("5 backups, 3 stay: the days %v go, want [1 2]", got)
	}
	if !slices.Equal(good, unordered) {
		t.Error("the caller's slice was changed")
	}
	if got := removed(good, 9); len(got) > 0 {
		t.Errorf("5 backups, 9 may stay: the days %v go", got)
	}
	broken := []Snapshot{day(1, true), day(2, true), day(3, false), day(4, false), day(5, false)}
	if got := removed(broken, 3); slices.Contains(got, 2) {
		t.Errorf("the only backups that can be restored are removed: the days %v go", got)
	} else if !slices.Equal(got, []int{1}) {
		t.Errorf("the three newest are not verified, 3 stay and the newest that is: the days %v go, want [1]", got)
	}
	if got := removed(good, 0); slices.Contains(got, 5) {
		t.Error("nothing is asked to stay, and the last verified backup is removed")
	}
}
