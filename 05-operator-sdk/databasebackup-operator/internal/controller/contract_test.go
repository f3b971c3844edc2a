package controller

import (
	"encoding/json"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	databasesv1 "github.com/example/databasebackup-operator/api/v1"
)

// testdata/contract.json is a copy of pgbackup's file: the tests of pgbackup compare its settings and its result with
// the same file.
func readContract(t *testing.T) (c struct {
	Environment map[string]map[string]string
	ExitFinal   int32
	Result      json.RawMessage
}) {
	t.Helper()
	text, err := os.ReadFile("testdata/contract.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &c); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestJobsHaveTheEnvironmentOfTheContract(t *testing.T) {
	b := complete("shop")
	b.UID = "7e1b"
	b.Spec.TimeZone = "Europe/Berlin"
	b.Spec.Retention = databasesv1.Retention{KeepLast: new(int32(3)), KeepDaily: 4, KeepWeekly: 5,
		KeepMonthly: 6, MaxAgeDays: 7}
	b.Status.Backups = []databasesv1.Backup{{Name: "orders-29579170", State: stateBroken},
		{Name: "orders-29579175", State: stateGood}, {Name: "orders-29579180", State: stateBroken}}
	b.Spec.Verification = databasesv1.Verification{Mode: databasesv1.VerifyRestore, Query: "SELECT $1 > 0"}
	b.Spec.TargetRef.TLS = databasesv1.TLS{Mode: databasesv1.TLSVerifyFull,
		CA: &databasesv1.CAReference{SecretKeyRef: &databasesv1.KeyReference{Name: "authority", Key: "tls.crt"}}}
	r := &databasesv1.DatabaseRestore{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "monday",
		UID: "c0de"}, Spec: databasesv1.DatabaseRestoreSpec{DatabaseBackupName: orders, BackupName: "orders-7",
		DatabaseName: "other", Overwrite: true}}
	have := map[string]map[string]string{}
	for _, job := range []*batchv1.Job{
		desiredBackup(b, "orders-29579190", ""), desiredRestore(r, b, ""), desiredDelete(b, "")} {
		pod := job.Spec.Template.Spec
		for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
			have[c.Args[0]] = environmentOf(c)
		}
	}
	if diff := cmp.Diff(readContract(t).Environment, have); diff != "" {
		t.Errorf("(-contract +have):\n%s", diff)
	}
	if exitFinal != readContract(t).ExitFinal {
		t.Error("exit code", exitFinal)
	}
}

func TestTheResultOfTheContractIsUnderstood(t *testing.T) {
	at := time.Date(2026, 3, 29, 2, 30, 1, 0, time.UTC)
	want := &result{Verb: "backup", Succeeded: true, Reason: "BackupSucceeded", Message: "a message",
		Warning: "a warning",
		Backup: &facts{Name: "orders-29579190", State: "Broken", Path: "/volume/backups/orders/7e1b/orders-29579190.dump",
			Size: 4096, SHA256: "5c1f",
			Started: at, Completed: at.Add(time.Second), ServerVersion: "17.2",
			Verified: &verification{Mode: databasesv1.VerifyRestore, Time: at.Add(2 * time.Second)},
			Failure: &verification{Mode: databasesv1.VerifyArchive, Time: at.Add(3 * time.Second),
				Reason: "ChecksumMismatch", Message: "why"}},
		Restored: &databasesv1.Restored{Database: "orders", Tables: 2, Rows: 10000, Replaced: true},
		Backups:  []databasesv1.Backup{{Name: "orders-29579190", State: "Good"}},
		Removed:  []string{"orders-29579180"}, Omitted: 3}
	if diff := cmp.Diff(want, parseResult(string(readContract(t).Result))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
