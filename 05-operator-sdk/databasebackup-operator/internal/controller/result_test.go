package controller

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	databasesv1 "github.com/example/databasebackup-operator/api/v1"
)

// After status was lost, the list of finish brings the backups back. The oldest are cut.
func TestTheListOfTheRepositoryIsInOrder(t *testing.T) {
	r := &result{}
	for i := range 60 {
		r.Backups = append(r.Backups, listed{Name: fmt.Sprintf("orders-%d", 29000000+i),
			Completed: time.Unix(int64(29000000+i)*60, 0), Snapshot: "1a2b3c4d"})
	}
	all := mergeList(nil, r)
	if len(all) != databasesv1.MaxBackups {
		t.Fatal(len(all))
	}
	for i, b := range all {
		if want := fmt.Sprintf("orders-%d", 29000059-i); b.Name != want {
			t.Errorf("number %d is %s, want %s", i, b.Name, want)
		}
	}
}

// The list of finish replaces the backups in status. Facts that only status has stay.
func TestTheListOfARunIsWhatTheRepositoryHas(t *testing.T) {
	at := metav1.Time{Time: time.Unix(29000030*60, 0)}
	before := []databasesv1.Backup{
		{Name: "orders-2", Snapshot: "22222222", Stored: 7, CompletionTime: &at, Verified: databasesv1.VerifyNone},
		{Name: "orders-1", Snapshot: "11111111", Verified: databasesv1.VerifyNone}}
	marked := before[0]
	marked.Snapshot, marked.Verified = "33333333", databasesv1.VerifyRestore
	older := databasesv1.Backup{Name: "orders-0", Path: "/backups/uid/orders-0.dump", Verified: databasesv1.VerifyNone}
	for list, want := range map[string][]databasesv1.Backup{
		`"backups":[{"name":"orders-2","snapshot":"33333333","verified":"Restore"}]`: {marked},
		`"backups":[{"name":"orders-0","path":"/volume/backups/uid/orders-0.dump"}]`: {older},
	} {
		r := parseResult(`{"verb":"finish","reason":"Finished",` + list + `}`)
		if diff := cmp.Diff(want, mergeList(before, r)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", list, diff)
		}
	}
}
