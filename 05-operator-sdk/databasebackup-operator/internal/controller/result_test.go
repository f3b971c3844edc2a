package controller

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	databasesv1 "github.com/example/databasebackup-operator/api/v1"
)

// After status was lost, only the names of backups are known. They are sorted by the minute in the name, and the oldest
// are cut.
func TestBackupsWithoutFactsAreInOrder(t *testing.T) {
	r, completed := &result{}, time.Unix(29000030*60, 0)
	for i := range 60 {
		r.Backups = append(r.Backups, databasesv1.Backup{Name: fmt.Sprintf("orders-%d", 29000000+i), State: "Good"})
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

// A list, even of a failed run, replaces the backups in status. A run that could not read the volume has no list.
func TestTheListOfARunIsWhatTheVolumeHas(t *testing.T) {
	before := []databasesv1.Backup{{Name: "orders-2", State: "Good"}, {Name: "orders-1", State: "Good"}}
	for list, want := range map[string][]databasesv1.Backup{
		``:                          before,
		`"backups":[],`:             {},
		`"backups":[],"omitted":2,`: before,
		`"backups":[{"name":"orders-2","state":"Broken"}],`: {{Name: "orders-2", State: "Broken"}},
	} {
		r := parseResult(`{"verb":"backup",` + list + `"reason":"AuthenticationFailed"}`)
		if diff := cmp.Diff(want, mergeBackups(before, r)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", list, diff)
		}
	}
}

// Only evidence against the dump makes the condition False. A backup that passed only a weaker verification before did
// not pass its verification.
func TestABackupThatCouldNotBeVerifiedIsNotReportedAsBroken(t *testing.T) {
	for state, want := range map[string]metav1.ConditionStatus{
		unverifiable: metav1.ConditionUnknown, "Broken": metav1.ConditionFalse} {
		t.Run(state, func(t *testing.T) {
			status := databasesv1.DatabaseBackupStatus{ActiveJob: "orders-29000030"}
			failure := &verification{Mode: databasesv1.VerifyRestore, Reason: "SomeReason", Message: "why"}
			recordOutcome(&status, &outcome{explanation: explanation{"SomeReason", "why"}, result: &result{
				Backup: &facts{Name: "orders-29000030", State: state, Failure: failure, Verified: &verification{
					Mode: databasesv1.VerifyArchive, Time: time.Now()}}}}, setter{&status.Conditions, 1, time.Now()})
			have := condition(status.Conditions, databasesv1.ConditionRestoreVerified)
			if have.Status != want || have.Reason != "SomeReason" || status.Backups[0].State != state {
				t.Errorf("%+v, backups %+v", have, status.Backups)
			}
			if status.LastVerifiedTime != nil {
				t.Errorf("the backup counts as verified at %s", status.LastVerifiedTime)
			}
		})
	}
}
