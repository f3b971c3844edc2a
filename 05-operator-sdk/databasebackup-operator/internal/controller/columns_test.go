package controller

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"

	databasesv1 "github.com/example/databasebackup-operator/api/v1"
)

// columns requests one object as kubectl get does, and returns its cells with the names of their columns, in order.
func (b *fixture) columns(resource, name string) (all [][2]any) {
	b.t.Helper()
	d, err := discovery.NewDiscoveryClientForConfig(config)
	b.must(err)
	data, err := d.RESTClient().Get().
		AbsPath("/apis", databasesv1.GroupVersion.Group, databasesv1.GroupVersion.Version, "namespaces",
			b.namespace, resource, name).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").
		Do(b.t.Context()).Raw()
	b.must(err)
	table := &metav1.Table{}
	b.must(json.Unmarshal(data, table))
	for i, column := range table.ColumnDefinitions {
		if column.Name != "Age" { // the age increases
			all = append(all, [2]any{column.Name, table.Rows[0].Cells[i]})
		} else if i != len(table.ColumnDefinitions)-1 {
			b.t.Error("Age is not the last column")
		}
	}
	return all
}

func ago(d time.Duration) *metav1.Time { return &metav1.Time{Time: time.Now().Add(-d)} }

func TestTheColumnsOfADatabaseBackup(t *testing.T) {
	b := newFixture(t)
	want := [][2]any{{"Name", "orders"}, {"Database", complete("").Spec.DatabaseName}, {"Schedule", "*/5 * * * *"},
		{"Last Backup", nil}, {"Ready", nil}, {"Verified", nil}}
	if diff := cmp.Diff(want, b.columns("databasebackups", orders)); diff != "" {
		t.Error("of a new one:", diff)
	}
	b.reconcile()
	x := b.backup()
	x.Status.LastBackupTime, x.Status.LastVerifiedTime = ago(90*time.Minute+time.Second), ago(49*time.Hour)
	b.must(b.Status().Update(t.Context(), x))
	want[3][1], want[4][1], want[5][1] = "90m", "True", "2d1h"
	if diff := cmp.Diff(want, b.columns("databasebackups", orders)); diff != "" {
		t.Error("with a backup:", diff)
	}
}

func TestTheColumnsOfADatabaseRestore(t *testing.T) {
	b := newFixture(t)
	b.ask()
	want := [][2]any{{"Name", "monday"}, {"Backup", "orders-7"}, {"Succeeded", nil}, {"Reason", nil}, {"Completed", nil}}
	if diff := cmp.Diff(want, b.columns("databaserestores", monday)); diff != "" {
		t.Error("of a new one:", diff)
	}
	b.follow()
	want[2][1], want[3][1] = "Unknown", "Restoring"
	if diff := cmp.Diff(want, b.columns("databaserestores", monday)); diff != "" {
		t.Error("while it works:", diff)
	}
	r := b.restore()
	setter{&r.Status.Conditions, r.Generation, time.Now()}.to(databasesv1.ConditionSucceeded, metav1.ConditionTrue,
		explanation{"RestoreSucceeded", "done"})
	r.Status.CompletionTime = ago(3*time.Minute + time.Second)
	b.must(b.Status().Update(t.Context(), r))
	want[2][1], want[3][1], want[4][1] = "True", "RestoreSucceeded", "3m1s"
	got := b.columns("databaserestores", monday)
	if got[4][1] == "3m2s" { // a second has gone by
		got[4][1] = "3m1s"
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error("of one that ended:", diff)
	}
}

// kubectl finds the kinds by their short names.
func TestShortNames(t *testing.T) {
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	list, err := d.ServerResourcesForGroupVersion(databasesv1.GroupVersion.String())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for _, r := range list.APIResources {
		got[r.Name] = r.ShortNames
	}
	want := map[string][]string{"databasebackups": {"dbb"}, "databaserestores": {"dbr"}, "databasebackups/status": nil,
		"databaserestores/status": nil}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
