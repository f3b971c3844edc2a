package controller

import (
	"encoding/json"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
)

// The operator does not know the values of Secrets, so it cannot filter what a container writes. It copies the sentences
// of pgbackup's results, and no other text.
func TestNoValueOfASecretReachesStatusOrEvents(t *testing.T) {
	const secret = "Tr0ub4dor&3 horse"
	refusal := `password authentication failed for user "` + secret + `"`
	for name, message := range map[string]string{
		"an image without pgbackup": refusal,
		"a result that was cut":     `{"verb":"backup","reason":"DumpFailed","message":"` + refusal,
	} {
		write := func(b *fixture, job *batchv1.Job, reason string) {
			status := b.ended(1, "Error", nil)
			end(&status).Message = message
			b.run(job, status)
			b.finish(job, reason)
		}
		hidden := func(b *fixture, status any, reason string) {
			b.t.Helper()
			written, err := json.Marshal(status)
			b.must(err)
			all := strings.ReplaceAll(string(written), `\u0026`, "&") + strings.Join(b.recorded(), "\n")
			if strings.Contains(all, secret) || !strings.Contains(all, reason) {
				b.t.Error(all)
			}
		}
		t.Run(name+", in a backup", func(t *testing.T) {
			b, job := newRun(t)
			write(b, job, batchv1.JobReasonBackoffLimitExceeded)
			b.reconcile()
			hidden(b, b.backup().Status, "Failed")
		})
		t.Run(name+", at a deadline", func(t *testing.T) {
			b, job := newRun(t)
			write(b, job, batchv1.JobReasonDeadlineExceeded)
			b.reconcile()
			hidden(b, b.backup().Status, batchv1.JobReasonDeadlineExceeded)
		})
		t.Run(name+", in a restore", func(t *testing.T) {
			b := newFixture(t)
			b.ask()
			b.follow()
			write(b, b.job("monday-restore"), batchv1.JobReasonBackoffLimitExceeded)
			b.follow()
			hidden(b, b.restore().Status, "Failed")
		})
		t.Run(name+", in a deletion", func(t *testing.T) {
			b := newDeletion(t)
			write(b, b.job("orders-delete"), batchv1.JobReasonBackoffLimitExceeded)
			b.reconcile()
			hidden(b, b.backup().Status, "Failed")
		})
	}
}
