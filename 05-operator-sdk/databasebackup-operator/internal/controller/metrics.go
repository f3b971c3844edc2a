package controller

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	databasesv1 "github.com/example/databasebackup-operator/api/v1"
	"github.com/example/databasebackup-operator/internal/schedule"
)

// Metrics is a prometheus.Collector with the metrics of each DatabaseBackup. The gauges are read from the cache at each
// scrape: they are right after a restart, every replica has them, and the gauges of a deleted DatabaseBackup disappear
// with it. The counters count what this process did, so they begin at 0 with it, and only the leader has them. An alert
// needs no counter: the conditions report how the last backup ended.
type Metrics struct {
	backups client.Reader
	clock   clock.PassiveClock

	attempts, successes, failures *prometheus.CounterVec
}

var byBackup = []string{"namespace", "name"}

var (
	createdDesc = prometheus.NewDesc("databasebackup_created_timestamp_seconds",
		"When the DatabaseBackup was created.", byBackup, nil)
	suspendedDesc = prometheus.NewDesc("databasebackup_suspended",
		"1 while the schedule is suspended, else 0.", byBackup, nil)
	periodDesc = prometheus.NewDesc("databasebackup_schedule_period_seconds",
		"Time between two runs of the schedule: the longer one of the interval that began last and the one before it.",
		byBackup, nil)
	nextRunDesc = prometheus.NewDesc("databasebackup_next_run_timestamp_seconds",
		"When the next run of the schedule is due.", byBackup, nil)
	lastSuccessDesc = prometheus.NewDesc("databasebackup_last_success_timestamp_seconds",
		"When the last successful run was complete.", byBackup, nil)
	goodDesc = prometheus.NewDesc("databasebackup_newest_good_timestamp_seconds",
		"When the newest good backup was complete. In verification mode None, backups that were not verified count too.",
		byBackup, nil)
	goodSizeDesc = prometheus.NewDesc("databasebackup_newest_good_size_bytes",
		"Size of the newest good backup.", byBackup, nil)
	goodDurationDesc = prometheus.NewDesc("databasebackup_newest_good_duration_seconds",
		"How long the dump of the newest good backup took.", byBackup, nil)
	conditionDesc = prometheus.NewDesc("databasebackup_condition",
		"1 for the status and the reason that a condition has now.", append(byBackup, "type", "status", "reason"), nil)
)

// NewMetrics returns the metrics of the DatabaseBackups that a cache has.
func NewMetrics(backups client.Reader, now clock.PassiveClock) *Metrics {
	counter := func(name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, byBackup)
	}
	return &Metrics{
		backups: backups, clock: now,
		attempts:  counter("databasebackup_attempts_total", "Backup Jobs that were created."),
		successes: counter("databasebackup_successes_total", "Backup Jobs that succeeded."),
		failures:  counter("databasebackup_failures_total", "Backup Jobs that failed, or left no result."),
	}
}

// Start implements manager.Runnable: it keeps the metrics registered until ctx ends. The manager calls it when the
// caches have synced, so a scrape never waits for them.
func (m *Metrics) Start(ctx context.Context) error {
	defer metrics.Registry.Unregister(m)
	if err := metrics.Registry.Register(m); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: each replica reports the age of a backup, even while no
// replica leads.
func (m *Metrics) NeedLeaderElection() bool { return false }

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(to chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{createdDesc, suspendedDesc, periodDesc, nextRunDesc, lastSuccessDesc, goodDesc,
		goodSizeDesc, goodDurationDesc, conditionDesc} {
		to <- desc
	}
	for _, counter := range m.counters() {
		counter.Describe(to)
	}
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(to chan<- prometheus.Metric) {
	for _, counter := range m.counters() {
		counter.Collect(to)
	}
	var list databasesv1.DatabaseBackupList
	if err := m.backups.List(context.Background(), &list, client.UnsafeDisableDeepCopy); err != nil { // read only
		to <- prometheus.NewInvalidMetric(createdDesc, err)
		return
	}
	for i := range list.Items {
		collectBackup(&list.Items[i], m.clock.Now(), to)
	}
}

// collectBackup sends the gauges of one DatabaseBackup. An unknown value has no series, because 0 would be a value.
func collectBackup(b *databasesv1.DatabaseBackup, now time.Time, to chan<- prometheus.Metric) {
	gauge := func(desc *prometheus.Desc, value float64, more ...string) {
		to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value,
			append([]string{b.Namespace, b.Name}, more...)...)
	}
	at := func(desc *prometheus.Desc, t time.Time) {
		if !t.IsZero() {
			gauge(desc, float64(t.Unix()))
		}
	}
	at(createdDesc, b.CreationTimestamp.Time)
	at(nextRunDesc, timeOf(b.Status.NextScheduleTime))
	at(lastSuccessDesc, timeOf(b.Status.LastBackupTime))
	suspended := 0.0
	if b.Spec.Suspend {
		suspended = 1
	}
	gauge(suspendedDesc, suspended)
	if when, err := schedule.Parse(b.Spec.Schedule, b.Spec.TimeZone); err == nil {
		gauge(periodDesc, when.Period(now).Seconds())
	}
	if good := newestGood(b); good != nil {
		at(goodDesc, takenAt(*good))
		if good.CompletionTime != nil && good.StartTime != nil { // else only its name is known
			gauge(goodSizeDesc, float64(good.Size))
			gauge(goodDurationDesc, good.CompletionTime.Sub(good.StartTime.Time).Seconds())
		}
	}
	for _, c := range b.Status.Conditions {
		gauge(conditionDesc, 1, c.Type, string(c.Status), c.Reason)
	}
}

// newestGood returns the newest backup that passed a verification, nil for none. Where the user wants no verification, a
// backup that was not verified counts too: otherwise no backup would count.
func newestGood(b *databasesv1.DatabaseBackup) *databasesv1.Backup {
	for i, backup := range b.Status.Backups { // the newest first
		if backup.Verified == databasesv1.VerifyArchive || backup.Verified == databasesv1.VerifyRestore ||
			b.Spec.Verification.Mode == databasesv1.VerifyNone {
			return &b.Status.Backups[i]
		}
	}
	return nil
}

func (m *Metrics) counters() []*prometheus.CounterVec {
	return []*prometheus.CounterVec{m.attempts, m.successes, m.failures}
}

// begin makes the counters of a DatabaseBackup begin at 0. A counter that begins at 1 hides its first event from rate
// and increase.
func (m *Metrics) begin(key types.NamespacedName) {
	for _, counter := range m.counters() {
		counter.WithLabelValues(key.Namespace, key.Name)
	}
}

func (m *Metrics) started(key types.NamespacedName) {
	m.attempts.WithLabelValues(key.Namespace, key.Name).Inc()
}

func (m *Metrics) ended(key types.NamespacedName, end *outcome) {
	counter := m.failures
	if end.succeeded {
		counter = m.successes
	}
	counter.WithLabelValues(key.Namespace, key.Name).Inc()
}

// forget removes the counters of a DatabaseBackup that is gone.
func (m *Metrics) forget(key types.NamespacedName) {
	for _, counter := range m.counters() {
		counter.DeleteLabelValues(key.Namespace, key.Name)
	}
}
