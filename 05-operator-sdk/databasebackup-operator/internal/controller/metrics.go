package controller

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	databasesv1 "github.com/example/databasebackup-operator/api/v1"
)

// Metrics are those of DatabaseBackups, by namespace and name. Counters begin with the process; the times and the
// size are those of status, so that an alert on an old backup works after a restart too.
type Metrics struct {
	attempts, successes, failures      *prometheus.CounterVec
	duration, size, lastSuccess, comes *prometheus.GaugeVec
}

// NewMetrics registers the metrics.
func NewMetrics(registry prometheus.Registerer) (*Metrics, error) {
	by := []string{"namespace", "name"}
	counter := func(name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, by)
	}
	gauge := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, by)
	}
	m := &Metrics{
		attempts:    counter("databasebackup_attempts_total", "Backup Jobs that were created."),
		successes:   counter("databasebackup_successes_total", "Backup Jobs that succeeded."),
		failures:    counter("databasebackup_failures_total", "Backup Jobs that failed, or left no result."),
		duration:    gauge("databasebackup_last_duration_seconds", "How long the last run took, all tries together."),
		size:        gauge("databasebackup_last_size_bytes", "Size of the newest backup."),
		lastSuccess: gauge("databasebackup_last_success_timestamp_seconds", "When the last successful run was complete."),
		comes:       gauge("databasebackup_next_run_timestamp_seconds", "When the next run of the schedule is due."),
	}
	for _, c := range []prometheus.Collector{m.attempts, m.successes, m.failures, m.duration, m.size, m.lastSuccess,
		m.comes} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
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
	m.duration.WithLabelValues(key.Namespace, key.Name).Set(end.seconds)
}

// observeStatus sets the gauges from the status. A field that is not set has no value, which is not the same as 0.
func (m *Metrics) observeStatus(key types.NamespacedName, status databasesv1.DatabaseBackupStatus) {
	set := func(gauge *prometheus.GaugeVec, t *metav1.Time) {
		if t == nil {
			gauge.DeleteLabelValues(key.Namespace, key.Name)
			return
		}
		gauge.WithLabelValues(key.Namespace, key.Name).Set(float64(t.UnixNano()) / float64(time.Second))
	}
	set(m.lastSuccess, status.LastBackupTime)
	set(m.comes, status.NextScheduleTime)
	if len(status.Backups) > 0 && status.Backups[0].CompletionTime != nil {
		m.size.WithLabelValues(key.Namespace, key.Name).Set(float64(status.Backups[0].Size))
	} else {
		m.size.DeleteLabelValues(key.Namespace, key.Name)
	}
}

// forget removes the metrics of a DatabaseBackup that is gone.
func (m *Metrics) forget(key types.NamespacedName) {
	for _, c := range []*prometheus.CounterVec{m.attempts, m.successes, m.failures} {
		c.DeleteLabelValues(key.Namespace, key.Name)
	}
	for _, g := range []*prometheus.GaugeVec{m.duration, m.size, m.lastSuccess, m.comes} {
		g.DeleteLabelValues(key.Namespace, key.Name)
	}
}
