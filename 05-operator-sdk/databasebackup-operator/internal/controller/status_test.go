package controller

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/onsi/gomega"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// Only the watch of the object itself reports the change.
func TestAFalsifiedStatusEnqueues(t *testing.T) {
	l := newLoop(t, func(x *backup) { x.Spec.Schedule = "@yearly" })
	l.comesToSay("Ready", "True Scheduled")
	l.must(retry.RetryOnConflict(patient, func() error {
		x := l.backup()
		x.Status.NextScheduleTime, x.Status.InProgress = nil, true
		for i := range x.Status.Conditions {
			x.Status.Conditions[i].Status, x.Status.Conditions[i].Reason = metav1.ConditionFalse, "Lie"
		}
		return l.WithWatch.Status().Update(t.Context(), x)
	}))
	l.comesToSay("Ready", "True Scheduled")
	l.Expect(l.says("TargetReady")).To(gomega.Equal("True TargetReady"))
	if s := l.backup().Status; s.InProgress || s.NextScheduleTime == nil {
		t.Errorf("%+v", s)
	}
}

// The API server refuses an event whose note is longer than 1,024 bytes.
func TestALongMessageIsRecordedShortened(t *testing.T) {
	b, job := newRun(t)
	b.recorded()
	b.run(job, b.ended(3, "Error", &result{Verb: "backup", Reason: "DumpFailed", Message: strings.Repeat("é", 800)}))
	b.finish(job, batchv1.JobReasonPodFailurePolicy)
	b.reconcile()
	note := strings.TrimPrefix(b.recorded()[0], "Warning DumpFailed ")
	if len(note) > 1024 || !utf8.ValidString(note) || !strings.HasSuffix(note, "é…") {
		t.Errorf("%d bytes: %s", len(note), note)
	}
	if m := condition(b.backup().Status.Conditions, "BackupSucceeded").Message; m != strings.Repeat("é", 800) {
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
			`" "succeeded"=true "reason"="BackupSucceeded" "message"="the backup was taken" "seconds"=40`,
		`"level"=0 "msg"="Restore ended" "job"="monday-restore" "succeeded"=false ` +
			`"reason"="TargetNotEmpty" "message"="it has tables"`,
	}
	if diff := cmp.Diff(want, strings.Split(strings.TrimSpace(lines.String()), "\n")); diff != "" {
		t.Error(diff)
	}
}
