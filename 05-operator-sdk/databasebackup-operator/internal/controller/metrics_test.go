package controller

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	databasesv1 "github.com/example/databasebackup-operator/api/v1"
)

func TestWhichBackupIsTheNewestGoodOne(t *testing.T) {
	const none, archive, restored = databasesv1.VerifyNone, databasesv1.VerifyArchive, databasesv1.VerifyRestore
	list := func(verified ...databasesv1.VerificationMode) (all []databasesv1.Backup) {
		for i, mode := range verified {
			all = append(all, databasesv1.Backup{Name: string(rune('a' + i)), Verified: mode})
		}
		return all
	}
	for name, test := range map[string]struct {
		mode    databasesv1.VerificationMode
		backups []databasesv1.Backup
		want    string
	}{
		"there is none":                    {archive, nil, ""},
		"the newest":                       {archive, list(archive, restored), "a"},
		"the newest could not be verified": {restored, list(none, none, restored), "c"},
		"none could be verified":           {restored, list(none, none), ""},
		"an earlier verification":          {restored, list(none, archive), "b"},
		"no verification is wanted":        {none, list(none, archive), "a"},
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

// scraped returns the samples of a scrape, by the name of the metric and the condition, and the type and the labels of
// each metric.
func scraped(t *testing.T, m *Metrics) (samples map[string]float64, metrics map[string]string) {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	must(t, registry.Register(m))
	families, err := registry.Gather()
	must(t, err)
	samples, metrics = map[string]float64{}, map[string]string{}
	for _, f := range families {
		for _, sample := range f.GetMetric() {
			name, labels := strings.TrimPrefix(f.GetName(), "databasebackup_"), []string(nil)
			for _, l := range sample.GetLabel() { // in the order of their names
				labels = append(labels, l.GetName())
				if !slices.Contains(byBackup, l.GetName()) {
					name += " " + l.GetValue()
				}
			}
			samples[name] = sample.GetGauge().GetValue() + sample.GetCounter().GetValue()
			metrics[f.GetName()] = strings.ToLower(f.GetType().String()) + ": " + strings.Join(labels, ", ")
		}
	}
	return samples, metrics
}

// row is a line of the page's table: | `name` | type | labels | meaning |.
var row = regexp.MustCompile("(?m)^\\| `(databasebackup_[a-z_]+)` \\| ([a-z]+) \\| ([a-z, ]+) \\| .+ \\|$")

// documented returns the metrics on the page, from which ../../observe takes the names for alerts and dashboard.
func documented(t *testing.T) map[string]string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "observe", "README.md"))
	must(t, err)
	all := map[string]string{}
	for _, r := range row.FindAllStringSubmatch(string(data), -1) {
		all[r[1]] = r[2] + ": " + r[3]
	}
	return all
}

// measured gives the operator metrics that show only the fixture's DatabaseBackup.
func (b *fixture) measured() *Metrics {
	b.operator.Metrics = NewMetrics(client.NewNamespacedClient(b.WithWatch, b.namespace), b.clock)
	return b.operator.Metrics
}

// A backup is taken, and a scrape has its figures. They disappear with the DatabaseBackup. TestMetricsOfTheProgram, in
// ../../cmd, scrapes the program.
func TestAScrapeHasTheFiguresOfABackup(t *testing.T) {
	b := newFixture(t)
	own := b.measured()
	b.runAt(0, 0)
	got, metrics := scraped(t, own)
	completed := float64(b.clock.Now().Unix())
	if diff := cmp.Diff(map[string]float64{
		"attempts_total": 1, "successes_total": 1, "failures_total": 0, "suspended": 0,
		"created_timestamp_seconds":                      float64(b.backup().CreationTimestamp.Unix()),
		"next_run_timestamp_seconds":                     float64(b.first().Add(5 * time.Minute).Unix()),
		"last_success_timestamp_seconds":                 completed,
		"schedule_period_seconds":                        300,
		"newest_good_timestamp_seconds":                  completed,
		"newest_good_size_bytes":                         4711,
		"newest_good_duration_seconds":                   30,
		"condition Scheduled True Ready":                 1,
		"condition TargetReady True TargetReady":         1,
		"condition BackupSucceeded True BackupSucceeded": 1,
		"condition NotRestored Unknown RestoreVerified":  1,
	}, got); diff != "" {
		t.Error("want, and scraped:", diff)
	}
	if diff := cmp.Diff(documented(t), metrics); diff != "" {
		t.Error("observe/README.md, and scraped:", diff)
	}
	b.at(5, 0)
	b.reconcile()
	failed := b.job(b.backup().Status.ActiveJob)
	b.run(failed, b.ended(1, "Error", &result{Verb: verbBackup, Reason: "AuthenticationFailed",
		Message: "the server refuses the credentials"}))
	b.finish(failed, batchv1.JobReasonBackoffLimitExceeded)
	b.reconcile()
	got, _ = scraped(t, own)
	if got["attempts_total"] != 2 || got["successes_total"] != 1 || got["failures_total"] != 1 {
		t.Error("scraped after a second run, which failed:", got)
	}
	b.must(b.Delete(t.Context(), b.backup()))
	b.reconcile()
	if got, _ := scraped(t, own); len(got) > 0 {
		t.Error("scraped of a deleted one:", got)
	}
}

// Another object, an incomplete status or a schedule that never comes must not falsify a gauge.
func TestGaugesOfWhatIsNotKnown(t *testing.T) {
	b := newFixture(t)
	own := b.measured()
	want := map[string]float64{"suspended": 0, "schedule_period_seconds": 300, "newest_good_timestamp_seconds": 0,
		"newest_good_duration_seconds": 0}
	compare := func(why string) {
		t.Helper()
		got, _ := scraped(t, own)
		for name, value := range want {
			if got[name] != value {
				t.Errorf("%s: %s is %v, want %v", why, name, got[name], value)
			}
		}
	}
	compare("before the first run")

	minute := time.Date(2026, time.October, 1, 3, 0, 0, 0, time.UTC)
	lost := b.backup()
	lost.Status.Backups = []databasesv1.Backup{{Name: jobName(orders, minute), Verified: databasesv1.VerifyArchive,
		CompletionTime: &metav1.Time{Time: minute}}}
	lost.Status.Conditions = []metav1.Condition{}
	b.must(b.Status().Update(t.Context(), lost))
	want["newest_good_timestamp_seconds"] = float64(minute.Unix())
	compare("a backup that only the list of the repository has")

	b.edit(func(x *backup) { x.Spec.Suspend, x.Spec.Schedule = true, "0 0 30 2 *" })
	want["suspended"], want["schedule_period_seconds"] = 1, 0
	compare("a schedule that never comes")
}
