package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/gomega"

	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	databasesv1 "github.com/example/databasebackup-operator/api/v1"
	"github.com/example/databasebackup-operator/internal/testenv"
	"github.com/example/databasebackup-operator/test/programtest"
)

// dump is the backup of the test.
var dump = struct {
	size               int64
	started, completed time.Time
}{4711, time.Unix(1_790_000_000, 0), time.Unix(1_790_000_030, 0)}

// A backup is taken, and the endpoint that Prometheus scrapes has its figures. With the DatabaseBackup they disappear.
func TestAScrapeHasTheFiguresOfABackup(t *testing.T) {
	f := newFixture(t)
	address := testenv.FreeAddress(t)
	launch(t, "--kubeconfig="+f.operator(), "WATCH_NAMESPACE="+f.namespace, "PGBACKUP_IMAGE=pgbackup:17",
		"--metrics-bind-address="+address)
	token := f.token("prometheus")
	scrape := func() map[string]float64 {
		_, body := programtest.Get("https://"+address+"/metrics", token)
		return samples(body, f.namespace)
	}
	f.ask("site")
	f.succeed(f.served("site"))
	f.Eventually(scrape).Should(gomega.HaveKey("newest_good_timestamp_seconds"))
	got := scrape()
	backup := &databasesv1.DatabaseBackup{}
	f.Expect(f.Get(t.Context(), client.ObjectKey{Namespace: f.namespace, Name: "site"}, backup)).To(gomega.Succeed())
	if diff := cmp.Diff(map[string]float64{
		"attempts_total": 1, "successes_total": 1, "failures_total": 0, "suspended": 0,
		"created_timestamp_seconds":                      float64(backup.CreationTimestamp.Unix()),
		"next_run_timestamp_seconds":                     float64(backup.Status.NextScheduleTime.Unix()),
		"last_success_timestamp_seconds":                 float64(backup.Status.LastBackupTime.Unix()),
		"schedule_period_seconds":                        got["schedule_period_seconds"],
		"newest_good_timestamp_seconds":                  float64(dump.completed.Unix()),
		"newest_good_size_bytes":                         float64(dump.size),
		"newest_good_duration_seconds":                   30,
		"condition Ready True Scheduled":                 1,
		"condition TargetReady True TargetReady":         1,
		"condition BackupSucceeded True BackupSucceeded": 1,
		"condition RestoreVerified Unknown NotRestored":  1,
	}, got); diff != "" {
		t.Error("want, and scraped:", diff)
	}
	if days := got["schedule_period_seconds"] / 86400; days < 365 || days > 366 {
		t.Errorf("a year has %v days", days)
	}
	_, body := programtest.Get("https://"+address+"/metrics", token)
	if diff := cmp.Diff(documented(t), families(body)); diff != "" {
		t.Error("observe/README.md, and scraped:", diff)
	}
	f.Expect(f.Delete(t.Context(), backup)).To(gomega.Succeed())
	f.Eventually(scrape).Should(gomega.BeEmpty())
}

// token creates a ServiceAccount with the permission to read metrics, and returns a token of it.
func (f *fixture) token(name string) string {
	f.t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: name}}
	f.create(account)
	f.allow(rbacv1.Subject{Kind: "ServiceAccount", Namespace: f.namespace, Name: name}, "metrics_reader_role.yaml", true)
	asked := &authenticationv1.TokenRequest{}
	f.Expect(f.SubResource("token").Create(f.t.Context(), account, asked)).To(gomega.Succeed())
	return asked.Status.Token
}

// succeed ends a Job as the kubelet and the Job controller do, with a good backup on the volume.
func (f *fixture) succeed(job *batchv1.Job) {
	f.t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: job.Name, Labels: job.Spec.Template.Labels,
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))}},
		Spec: job.Spec.Template.Spec}
	f.create(pod)
	message := fmt.Sprintf(`{"verb": "backup", "succeeded": true, "reason": "BackupSucceeded", "backup": {"name": %q,
		"state": "Good", "size": %d, "started": %q, "completed": %q}}`, job.Name, dump.size,
		dump.started.Format(time.RFC3339), dump.completed.Format(time.RFC3339))
	pod.Status = corev1.PodStatus{Phase: corev1.PodSucceeded, ContainerStatuses: []corev1.ContainerStatus{{
		Name: job.Spec.Template.Spec.Containers[0].Name, Image: "x", State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{Message: message, FinishedAt: metav1.Now()}}}}}
	f.Expect(f.Status().Update(f.t.Context(), pod)).To(gomega.Succeed())
	now := metav1.Now()
	job.Status = batchv1.JobStatus{StartTime: &now, CompletionTime: &now, Succeeded: 1}
	for _, condition := range []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete} {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{Type: condition,
			Status: corev1.ConditionTrue, LastProbeTime: now, LastTransitionTime: now})
	}
	f.Expect(f.Status().Update(f.t.Context(), job)).To(gomega.Succeed())
}

var (
	sample = regexp.MustCompile(`(?m)^databasebackup_([a-z_]+)\{(.*)\} (\S+)$`)
	label  = regexp.MustCompile(`([a-z_]+)="([^"]*)"`)
	family = regexp.MustCompile(`(?m)^# TYPE (databasebackup_[a-z_]+) ([a-z]+)$`)
	row    = regexp.MustCompile("(?m)^\\| `(databasebackup_[a-z_]+)` \\| ([a-z]+) \\| ([a-z, ]+) \\| .+ \\|$")
)

// samples are the values of the operator's own metrics for a namespace, by name and condition.
func samples(body, namespace string) map[string]float64 {
	all := map[string]float64{}
	for _, s := range sample.FindAllStringSubmatch(body, -1) {
		labels := map[string]string{}
		for _, l := range label.FindAllStringSubmatch(s[2], -1) {
			labels[l[1]] = l[2]
		}
		if labels["namespace"] == namespace {
			name := strings.Join([]string{s[1], labels["type"], labels["status"], labels["reason"]}, " ")
			all[strings.TrimSpace(name)], _ = strconv.ParseFloat(s[3], 64)
		}
	}
	return all
}

// families are the type and the labels of the operator's own metrics.
func families(body string) map[string]string {
	all := map[string]string{}
	for _, f := range family.FindAllStringSubmatch(body, -1) {
		var labels []string
		for _, l := range label.FindAllStringSubmatch(regexp.MustCompile(`(?m)^`+f[1]+`\{.*$`).FindString(body), -1) {
			labels = append(labels, l[1])
		}
		slices.Sort(labels)
		all[f[1]] = f[2] + ": " + strings.Join(labels, ", ")
	}
	return all
}

// documented returns the metrics on the page, from which ../observe takes the names for alerts and dashboard.
func documented(t *testing.T) map[string]string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "observe", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, r := range row.FindAllStringSubmatch(string(data), -1) {
		all[r[1]] = r[2] + ": " + r[3]
	}
	return all
}
