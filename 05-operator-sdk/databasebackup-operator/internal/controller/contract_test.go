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
	Environment                map[string]map[string]string
	ExitFinal, ExitNotVerified int32
	Result                     json.RawMessage
}) {
	t.Helper()
	text, err := os.ReadFile("testdata/contract.json")
	must(t, err)
	must(t, json.Unmarshal(text, &c))
	return c
}

func TestJobsHaveTheEnvironmentOfTheContract(t *testing.T) {
	b := complete("shop")
	b.UID = "7e1b"
	b.Spec.TimeZone = "Europe/Berlin"
	b.Spec.Retention = databasesv1.Retention{KeepLast: new(int32(3)), KeepDaily: 4, KeepWeekly: 5,
		KeepMonthly: 6, KeepWithinDays: 8, MaxAgeDays: 7}
	b.Spec.Verification = databasesv1.Verification{Mode: databasesv1.VerifyRestore, Query: "SELECT $1 > 0"}
	b.Spec.TargetRef.TLS = databasesv1.TLS{Mode: databasesv1.TLSVerifyFull,
		CA: &databasesv1.CAReference{SecretKeyRef: &databasesv1.KeyReference{Name: "authority", Key: "tls.crt"}}}
	r := &databasesv1.DatabaseRestore{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "monday",
		UID: "c0de"}, Spec: databasesv1.DatabaseRestoreSpec{DatabaseBackupName: orders, BackupName: "orders-7",
		DatabaseName: "other"}}
	have := map[string]map[string]string{}
	for _, job := range []*batchv1.Job{desiredBackup(b, "orders-29579190", ""), desiredRestore(r, b, "")} {
		pod := job.Spec.Template.Spec
		for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
			have[c.Args[0]] = environmentOf(c)
		}
	}
	store := databasesv1.SecretReference{Name: "store"}
	ca := &databasesv1.KeyReference{Name: "store", Key: "authority"}
	b.Spec.Destination = &databasesv1.Destination{REST: &databasesv1.RESTDestination{
		URL: "https://rest.example.com:8000/orders/", CredentialsSecretRef: &store, CASecretRef: ca}}
	have["delete from rest"] = environment(desiredDelete(b, ""))
	r.Spec = databasesv1.DatabaseRestoreSpec{Snapshot: "1a2b3c4d",
		Repository: &databasesv1.Repository{Destination: databasesv1.Destination{S3: &databasesv1.S3Destination{
			Endpoint: "https://s3.example.com:9000", Bucket: "company", Prefix: "backups/orders", Region: "eu-central-1",
			CredentialsSecretRef: store, CASecretRef: ca}}},
		TargetRef: &databasesv1.TargetReference{Name: "spare"},
		Auth: &databasesv1.Auth{UsernameSecretRef: &databasesv1.KeyReference{Name: "admin", Key: "user"},
			PasswordSecretRef: &databasesv1.KeyReference{Name: "admin", Key: "password"}}}
	source, err := (&DatabaseRestoreReconciler{}).source(t.Context(), r)
	must(t, err)
	have["restore of a snapshot from s3"] = environment(desiredRestore(r, source, ""))
	if diff := cmp.Diff(readContract(t).Environment, have); diff != "" {
		t.Errorf("(-contract +have):\n%s", diff)
	}
	if c := readContract(t); exitFinal != c.ExitFinal || exitNotVerified != c.ExitNotVerified {
		t.Error("exit codes", exitFinal, exitNotVerified)
	}
}

func TestTheResultOfTheContractIsUnderstood(t *testing.T) {
	at := time.Date(2026, 3, 29, 2, 30, 1, 0, time.UTC)
	want := &result{Verb: "backup", Succeeded: true, Reason: "BackupSucceeded", Message: "a message",
		Warning: "a warning",
		Backup: &facts{Name: "orders-29579190", Snapshot: "1a2b3c4d", Size: 4096, Stored: 1024,
			Started: at, Completed: at.Add(time.Second), ServerVersion: "17.2",
			Verified: &verification{Mode: databasesv1.VerifyArchive, Time: at.Add(2 * time.Second)}},
		Restored: &databasesv1.Restored{Database: "orders", Tables: 2,
			LeftOut: []string{"event trigger audit"}},
		Backups: []listed{
			{Name: "orders-29579190", Snapshot: "1a2b3c4d", Completed: at.Add(time.Second), Size: 4096,
				Verified: databasesv1.VerifyRestore},
			{Name: "orders-29570000", Completed: time.Date(2026, 3, 22, 17, 20, 2, 0, time.UTC), Size: 2048,
				Path: "/volume/backups/orders/7e1b/orders-29570000.dump"}}}
	if diff := cmp.Diff(want, parseResult(string(readContract(t).Result))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
