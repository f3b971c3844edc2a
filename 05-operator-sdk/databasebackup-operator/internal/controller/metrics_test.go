package controller

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	databasesv1 "github.com/example/databasebackup-operator/api/v1"
)

func TestWhichBackupIsTheNewestGoodOne(t *testing.T) {
	list := func(states ...string) (all []databasesv1.Backup) {
		for i, state := range states {
			all = append(all, databasesv1.Backup{Name: string(rune('a' + i)), State: state})
		}
		return all
	}
	for name, test := range map[string]struct {
		mode    databasesv1.VerificationMode
		backups []databasesv1.Backup
		want    string
	}{
		"there is none":                        {databasesv1.VerifyArchive, nil, ""},
		"the newest":                           {databasesv1.VerifyArchive, list("Good", "Good"), "a"},
		"the newest could not be verified":     {databasesv1.VerifyRestore, list("Unverifiable", "Good"), "b"},
		"the newest is broken":                 {databasesv1.VerifyArchive, list("Broken", "Missing", "Good"), "c"},
		"a verification is wanted":             {databasesv1.VerifyArchive, list("Unverified", "Good"), "b"},
		"no verification is wanted":            {databasesv1.VerifyNone, list("Unverified", "Good"), "a"},
		"no verification, and evidence of one": {databasesv1.VerifyNone, list("Broken", "Unverifiable"), ""},
	} {
		b := &backup{Spec: databasesv1.DatabaseBackupSpec{Verification: databasesv1.Verification{Mode: test.mode}},
			Status: databasesv1.DatabaseBackupStatus{Backups: test.backups}}
		got := ""
		if good := newestGood(b); good != nil {
			got = good.Name
		}
		if got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

// gauges returns the values of some gauges in a scrape, 0 for a gauge without a value.
func gauges(t *testing.T, m *Metrics) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(m); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{"suspended": 0, "schedule_period_seconds": 0, "newest_good_timestamp_seconds": 0,
		"newest_good_size_bytes": 0}
	for _, f := range families {
		name := strings.TrimPrefix(f.GetName(), "databasebackup_")
		if _, asked := got[name]; asked {
			got[name] = f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	return got
}

// Another object, an incomplete status or a schedule that never comes must not falsify a gauge.
func TestGaugesOfWhatIsNotKnown(t *testing.T) {
	b := newFixture(t)
	own := NewMetrics(client.NewNamespacedClient(b.WithWatch, b.namespace), b.clock)
	want := map[string]float64{"suspended": 0, "schedule_period_seconds": 300, "newest_good_timestamp_seconds": 0,
		"newest_good_size_bytes": 0}
	compare := func(why string) {
		t.Helper()
		if diff := cmp.Diff(want, gauges(t, own)); diff != "" {
			t.Errorf("%s: want, and got: %s", why, diff)
		}
	}
	compare("before the first run")

	minute := time.Date(2026, time.October, 1, 3, 0, 0, 0, time.UTC)
	lost := b.backup()
	lost.Status.Backups = []databasesv1.Backup{{Name: jobName(orders, minute), State: stateGood}}
	lost.Status.Conditions = []metav1.Condition{}
	b.must(b.Status().Update(t.Context(), lost))
	want["newest_good_timestamp_seconds"] = float64(minute.Unix())
	compare("a file of which only the name is known")

	b.edit(func(x *backup) { x.Spec.Suspend, x.Spec.Schedule = true, "0 0 30 2 *" })
	want["suspended"], want["schedule_period_seconds"] = 1, 0
	compare("a schedule that never comes")
}
