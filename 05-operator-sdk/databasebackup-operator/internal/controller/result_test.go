package controller

import (
	"fmt"
	"testing"
	"time"

	databasesv1 "github.com/example/databasebackup-operator/api/v1"
)

// Backups of which nothing but the name is known, after status was lost, are in order by the minute in it: the oldest
// are cut.
func TestBackupsWithoutFactsAreInOrder(t *testing.T) {
	r, completed := &result{}, time.Unix(29000030*60, 0)
	for i := range 60 {
		r.Backups = append(r.Backups, listed{Name: fmt.Sprintf("orders-%d", 29000000+i), State: "Good"})
	}
	r.Backup = &facts{Name: "orders-29000030", Completed: completed.Add(20 * time.Second)}
	all := mergeBackups(nil, r)
	if len(all) != databasesv1.MaxBackups {
		t.Fatal(len(all))
	}
	for i, b := range all {
		if want := fmt.Sprintf("orders-%d", 29000059-i); b.Name != want {
			t.Errorf("number %d is %s, want %s", i, b.Name, want)
		}
	}
}
