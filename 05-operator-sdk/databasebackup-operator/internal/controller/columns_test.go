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

// columns requests the restore as kubectl get does, and returns its cells with the names of their columns, in order.
func (b *fixture) columns() (all [][2]any) {
	b.t.Helper()
	d, err := discovery.NewDiscoveryClientForConfig(config)
	b.must(err)
	data, err := d.RESTClient().Get().
		AbsPath("/apis", databasesv1.GroupVersion.Group, databasesv1.GroupVersion.Version, "namespaces",
			b.namespace, "databaserestores", monday).
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

// The first page of the chapter shows the columns of a DatabaseBackup.
func TestTheColumnsOfADatabaseRestore(t *testing.T) {
	b := newFixture(t)
	b.ask()
	b.follow()
	want := [][2]any{{"Name", "monday"}, {"Backup", "orders-7"}, {"Snapshot", nil}, {"Succeeded", "Unknown"},
		{"Reason", "Restoring"}, {"Completed", nil}}
	if diff := cmp.Diff(want, b.columns()); diff != "" {
		t.Error("while it works:", diff)
	}
	r := b.restore()
	r.Status.CompletionTime = &metav1.Time{Time: time.Now().Add(-30 * time.Hour)}
	b.must(b.Status().Update(t.Context(), r))
	want[5][1] = "30h"
	if diff := cmp.Diff(want, b.columns()); diff != "" {
		t.Error("of one that ended:", diff)
	}
}
