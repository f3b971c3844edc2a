package controller

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/onsi/gomega"

	batchv1 "k8s.io/api/batch/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	databasesv1 "github.com/example/databasebackup-operator/api/v1"
)

// falsify writes wrong values into the status.
func (b *fixture) falsify() {
	b.t.Helper()
	b.must(retry.RetryOnConflict(patient, func() error {
		x := b.backup()
		x.Status.NextScheduleTime, x.Status.InProgress = nil, true
		x.Status.Conditions[0].Status, x.Status.Conditions[0].Reason = metav1.ConditionFalse, "Lie"
		for i := range x.Status.Conditions {
			if x.Status.Conditions[i].Type == databasesv1.ConditionReady {
				x.Status.Conditions[i].Status, x.Status.Conditions[i].Reason = metav1.ConditionFalse, "Lie"
			}
		}
		return b.WithWatch.Status().Update(b.t.Context(), x)
	}))
}

// Only the watch of the object itself reports the change.
func TestAFalsifiedStatusEnqueues(t *testing.T) {
	l := newLoop(t, yearly)
	ready := func() string { return l.says("Ready") }
	l.Eventually(ready).Should(gomega.Equal("True Scheduled"))
	l.falsify()
	l.Eventually(ready).Should(gomega.Equal("True Scheduled"))
}

// The API server refuses an event whose note is longer than 1,024 bytes.
func TestALongMessageIsRecordedShortened(t *testing.T) {
	l := newLoop(t, func(x *backup) { x.Spec.Schedule, x.Spec.Immediate = "@yearly", true })
	job := l.active()
	l.clock.SetTime(time.Now())
	l.run(job, l.ended(3, "Error", &result{Verb: "backup", Reason: "DumpFailed", Message: strings.Repeat("é", 800)}))
	l.finish(job, batchv1.JobReasonPodFailurePolicy)
	var note string
	l.Eventually(func() string {
		list := &eventsv1.EventList{}
		l.must(l.List(t.Context(), list, client.InNamespace(l.namespace)))
		for _, e := range list.Items {
			if e.Reason == "DumpFailed" {
				note = e.Note
			}
		}
		return note
	}).ShouldNot(gomega.BeEmpty())
	if len(note) > maxNote || !utf8.ValidString(note) || !strings.HasSuffix(note, "é…") {
		t.Errorf("%d bytes: %s", len(note), note)
	}
	if m := condition(l.backup().Status.Conditions, "BackupSucceeded").Message; m != strings.Repeat("é", 800) {
		t.Error("the condition has not the whole message:", m)
	}
}

// The log has one line for the start and one for the end of each run.
func TestRunsAreLogged(t *testing.T) {
	var mu sync.Mutex
	var lines bytes.Buffer
	logger := funcr.New(func(_, args string) {
		mu.Lock()
		defer mu.Unlock()
		lines.WriteString(args + "\n")
	}, funcr.Options{})
	b := newFixture(t)
	ctx := log.IntoContext(t.Context(), logger)
	reconcile := func() {
		for range 4 {
			_, err := b.operator.Reconcile(ctx, b.request())
			b.must(err)
			_, err = b.restorer.Reconcile(ctx, ctrl.Request{NamespacedName: b.key()})
			b.must(err)
		}
	}
	b.at(0, 0)
	b.ask()
	reconcile()
	name := b.backup().Status.ActiveJob
	b.succeed()
	restoring := b.job("monday-restore")
	b.run(restoring, b.ended(3, "Error", &result{Verb: "restore", Reason: "TargetNotEmpty", Message: "it has tables"}))
	b.finish(restoring, batchv1.JobReasonPodFailurePolicy)
	reconcile()
	want := []string{
		`"level"=0 "msg"="Run started" "job"="` + name + `"`,
		`"level"=0 "msg"="Restore started" "job"="monday-restore"`,
		`"level"=0 "msg"="Run ended" "job"="` + name +
			`" "succeeded"=true "reason"="BackupSucceeded" "message"="1 table, 10 rows" "seconds"=40`,
		`"level"=0 "msg"="Restore ended" "job"="monday-restore" "succeeded"=false ` +
			`"reason"="TargetNotEmpty" "message"="it has tables"`,
	}
	if diff := cmp.Diff(want, strings.Split(strings.TrimSpace(lines.String()), "\n")); diff != "" {
		t.Error(diff)
	}
}
