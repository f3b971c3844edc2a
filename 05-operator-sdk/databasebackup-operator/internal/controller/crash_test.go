package controller

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"

	batchv1 "k8s.io/api/batch/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	databasesv1 "github.com/example/databasebackup-operator/api/v1"
)

// A crashTable shows the results of a story in which the operator crashes at one write: before the write reaches the
// API server, or after it, when the response is lost. A new operator continues, and knows only the state of the
// cluster.
type crashTable struct {
	mu                                sync.Mutex
	rows                              []crashRow
	sequences, crashes, runs, problem int
}

// A crashRow is one write.
type crashRow struct {
	write    string
	runs     [2]int // Jobs that ran, after a crash before and after the write
	problems []string
}

// A story is one crash sequence. It returns how many Jobs ran, and the violations.
type story func(b *fixture) (runs int, problems []string)

// run plays the story once for each of so many writes, before and after, and prints the table.
func (c *crashTable) run(t *testing.T, writes int, begin func(t *testing.T) *fixture, play story) {
	t.Helper()
	c.rows = make([]crashRow, writes)
	t.Run("sequences", func(t *testing.T) {
		for at := range writes {
			for i, before := range []bool{true, false} {
				t.Run(fmt.Sprintf("write %d, before %v", at+1, before), func(t *testing.T) {
					t.Parallel()
					b := begin(t)
					b.writes, b.crashAt, b.before = nil, at, before
					runs, problems := play(b)
					for _, p := range problems {
						t.Error(p)
					}
					c.note(b, at, i, runs, problems)
				})
			}
		}
	})
	var text bytes.Buffer
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "gone at write\tJobs run, gone before\tJobs run, gone after\tviolations")
	for i, row := range c.rows {
		violations := "none"
		if len(row.problems) > 0 {
			violations = strings.Join(row.problems, "; ")
		}
		_, _ = fmt.Fprintf(w, "%d %s\t%d\t%d\t%s\n", i+1, row.write, row.runs[0], row.runs[1], violations)
	}
	_ = w.Flush()
	t.Logf("%d sequences, %d crashes, %d Jobs run, %d violations\n%s", c.sequences, c.crashes, c.runs,
		c.problem, text.String())
	if c.crashes != c.sequences {
		t.Errorf("only %d of %d sequences crashed", c.crashes, c.sequences)
	}
}

func (c *crashTable) note(b *fixture, at, i, runs int, problems []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sequences, c.runs, c.problem = c.sequences+1, c.runs+runs, c.problem+len(problems)
	row := &c.rows[at]
	row.runs[i], row.problems = runs, append(row.problems, problems...)
	if len(b.writes) > at {
		c.crashes++
		row.write, _, _ = strings.Cut(b.writes[at], " ")
	}
}

// step lets the operator run once, and replaces it with a new operator when it has crashed.
func (b *fixture) step(reconcile func() error) {
	if err := reconcile(); err != nil {
		b.crashAt = -1
		b.operator = b.replica()
		b.restorer = &DatabaseRestoreReconciler{Base: b.operator.Base}
	}
}

func (b *fixture) stepBackup() {
	b.step(func() error { _, err := b.operator.Reconcile(b.t.Context(), b.request()); return err })
}

// Four runs, three by the schedule and one by hand. No run happens twice, and no run is lost. The history keeps no Job,
// so names are free again at once.
func TestCrashInBackups(t *testing.T) {
	(&crashTable{}).run(t, 17, func(t *testing.T) *fixture {
		return newFixture(t, func(x *backup) { x.Spec.SuccessfulJobsHistoryLimit = new(int32(0)) })
	}, func(b *fixture) (runs int, problems []string) {
		ran := map[string]int{} // by name
		for _, minute := range []int{0, 1, 2, 3, 5, 6, 10, 11} {
			if minute == 2 {
				b.edit(asks("once"))
			}
			for range 4 {
				b.at(minute, 0)
				b.stepBackup()
				if s := b.backup().Status; s.InProgress && finished(b.job(s.ActiveJob)) == nil {
					ran[s.ActiveJob]++
					b.succeed()
				}
			}
		}
		s, kept := b.backup().Status, map[string]bool{}
		for _, x := range s.Backups {
			kept[x.Name] = true
		}
		for name, times := range ran {
			if runs += times; times > 1 {
				problems = append(problems, fmt.Sprintf("%s ran %d times", name, times))
			}
			if !kept[name] {
				problems = append(problems, fmt.Sprintf("the backup of %s is not in status", name))
			}
		}
		if len(ran) != 4 || len(kept) != 4 || s.LastHandledTrigger != "once" || s.InProgress {
			problems = append(problems, fmt.Sprintf("%d of 4 slots ran: %+v", len(ran), s))
		}
		if n := len(b.passwords()); n != 1 {
			problems = append(problems, fmt.Sprintf("%d Secrets have a password", n))
		}
		return runs, problems
	})
}

// One Job deletes the backups, and then the DatabaseBackup is deleted.
func TestCrashInADeletion(t *testing.T) {
	(&crashTable{}).run(t, 3, func(t *testing.T) *fixture {
		b := newFixture(t, deleteFiles)
		b.reconcile()
		b.must(b.Delete(t.Context(), b.backup()))
		return b
	}, func(b *fixture) (runs int, problems []string) {
		for range 8 {
			b.stepBackup()
			job := &batchv1.Job{}
			err := b.Get(b.t.Context(), client.ObjectKey{Namespace: b.namespace, Name: "orders-delete"}, job)
			if err == nil && finished(job) == nil && !b.gone() {
				runs++
				b.finish(job, "")
			}
		}
		if runs != 1 || !b.gone() {
			problems = append(problems, fmt.Sprintf("%d Jobs deleted backups, and the DatabaseBackup is gone: %v", runs, b.gone()))
		}
		return runs, problems
	})
}

// A restore begins only once, wherever the operator crashes, and even if a user deletes its Job
// afterwards.
func TestCrashInARestore(t *testing.T) {
	(&crashTable{}).run(t, 4, func(t *testing.T) *fixture {
		b := newFixture(t)
		b.ask()
		return b
	}, func(b *fixture) (runs int, problems []string) {
		for range 8 {
			b.step(func() error {
				_, err := b.restorer.Reconcile(b.t.Context(), ctrl.Request{NamespacedName: b.key()})
				return err
			})
			job := &batchv1.Job{}
			err := b.Get(b.t.Context(), client.ObjectKey{Namespace: b.namespace, Name: "monday-restore"}, job)
			if err == nil && finished(job) == nil && b.restore().Status.InProgress {
				runs++
				b.run(job,
					b.ended(0, "Completed", &result{Verb: "restore", Succeeded: true, Reason: "RestoreSucceeded", Message: "done"}))
				b.finish(job, "")
			}
			if err == nil && ended(b.restore()) {
				b.must(client.IgnoreNotFound(b.Delete(b.t.Context(), job, client.PropagationPolicy("Background"))))
			}
		}
		if got := condition(b.restore().Status.Conditions, databasesv1.ConditionSucceeded).Reason; runs != 1 ||
			got != "RestoreSucceeded" {
			problems = append(problems, fmt.Sprintf("it ran %d times: %s", runs, got))
		}
		return runs, problems
	})
}
