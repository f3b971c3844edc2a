// Package stages has checks for programs that are not operators yet: the first stages of a chapter create no
// children, so no check of behaviours can judge them, and a later stage watches no children.
package stages

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/operator-workshop/scripts/examine/fixture"
	"example.com/operator-workshop/scripts/examine/ledger"
	"example.com/operator-workshop/scripts/examine/wire"
	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

// Checks returns all checks.
func Checks() []suite.Check {
	return []suite.Check{
		{ID: "stage/reports-changes", Run: reportsChanges,
			Title: "each MyWeb that is created or changed is logged with its name"},
		{ID: "stage/reports-deletions", Run: reportsDeletions,
			Title: "a MyWeb that is deleted is logged with its name"},
		{ID: "stage/accepts-deletions", Run: acceptsDeletions,
			Title: "a MyWeb that is deleted is not an error"},
		{ID: "stage/retries-failures", Run: retriesFailures,
			Title: "a failed sync is retried with backoff until it succeeds"},
		{ID: "stage/status-follows", Alone: true, Run: statusFollows,
			Title: "the status reports pods that run, also when they begin long after the MyWeb was created"},
	}
}

// soon is the longest time until an event and a log line appear.
const soon = 10 * time.Second

// lines are the lines of the operator's log that name the MyWeb of the check.
func lines(t *suite.T) (found []string) {
	for line := range strings.Lines(t.Operator.Process().Output()) {
		if strings.Contains(line, t.Namespace) && strings.Contains(line, "web") {
			found = append(found, line)
		}
	}
	return found
}

// logged calls do and waits for another line about the MyWeb.
func logged(t *suite.T, what string, do func()) {
	before := len(lines(t))
	do()
	t.Reaction(what+" is logged", soon, func() error {
		if len(lines(t)) == before {
			return fmt.Errorf("no new line of the log names %s/web", t.Namespace)
		}
		return nil
	})
	t.AwaitQuiet(300 * time.Millisecond)
}

func reportsChanges(t *suite.T) {
	logged(t, "a MyWeb that was created", func() { t.Create("web", suite.Sample()) })
	logged(t, "a MyWeb that was changed", func() { t.SetPage("web", "<h1>Changed</h1>") })
}

func reportsDeletions(t *suite.T) {
	logged(t, "a MyWeb that was created", func() { t.Create("web", suite.Sample()) })
	logged(t, "a MyWeb that was deleted", func() { t.Remove(suite.Resource, "web") })
}

// acceptsDeletions creates another MyWeb at the end: when the program has logged it, it has handled the deletion
// before.
func acceptsDeletions(t *suite.T) {
	logged(t, "a MyWeb that was created", func() { t.Create("web", suite.Sample()) })
	t.Remove(suite.Resource, "web")
	t.Create("next-web", suite.Sample())
	t.Eventually("a MyWeb that was created after a deletion is logged", soon, func() error {
		if !slices.ContainsFunc(lines(t), func(line string) bool { return strings.Contains(line, "next-web") }) {
			return fmt.Errorf("no line of the log names %s/next-web", t.Namespace)
		}
		return nil
	})
	for _, line := range lines(t) {
		if strings.Contains(line, "not found") {
			t.Fatalf("expected no error; but the deletion was taken for an error: %s", strings.TrimSpace(line))
		}
	}
}

// retriesFailures is for a program whose sync reads the ConfigMap with the name of the MyWeb.
func retriesFailures(t *suite.T) {
	const tries = 5
	reads := func() []ledger.Entry { return t.Requests(0, wire.Get) }
	t.Create("web", suite.Sample())
	t.Eventually(fmt.Sprintf("the ConfigMap that is not there is read %d times", tries), soon, func() error {
		if n := len(reads()); n < tries {
			return fmt.Errorf("it was read %d times", n)
		}
		return nil
	})
	// With the backoff of client-go the tenth pause is 2.5 s long. Its rate limiter alone passes 10 requests at once,
	// and then 5 a second. A pause is measured from the answer on, so that a slow API server does not cause one.
	const pause, most = 2 * time.Second, 15
	t.Eventually(fmt.Sprintf("nothing is read for %v", pause), 2*soon, func() error {
		all := reads()
		if len(all) > most {
			t.Fatalf("expected backoff; but there is no backoff: the ConfigMap was read %d times, without a pause of %v%s",
				len(all), pause, suite.Lines(all))
		}
		if last := all[len(all)-1]; last.Open || time.Since(last.Start.Add(last.Took)) < pause {
			return fmt.Errorf("it was read %d times", len(all))
		}
		return nil
	})
	_, err := t.Fixture.Kube.CoreV1().ConfigMaps(t.Namespace).Create(t.Ctx,
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "web"}}, metav1.CreateOptions{})
	t.Must(err, "create ConfigMap web")
	t.Eventually("the ConfigMap is found", 2*soon, func() error {
		if all := reads(); !all[len(all)-1].Accepted() {
			return fmt.Errorf("the last of %d reads did not find it", len(all))
		}
		return nil
	})
	after := len(reads())
	t.Pause(time.Second)
	if n := len(reads()) - after; n > 0 {
		t.Errorf("expected no read after a success; but a successful sync is repeated: %d more reads", n)
	}
}

// statusFollows stops the cluster's controllers until the program has handled a MyWeb without pods. Otherwise the
// pods usually run so soon that a program that reads them only once may see them by luck.
func statusFollows(t *suite.T) {
	t.WantStatus()
	resume := t.Stop(fixture.ControllerManager)
	t.Create("web", suite.Sample())
	t.Await("web", "has a status while no pod runs", 0, func(w *suite.Web) bool {
		return w.Status.ObservedGeneration == w.Generation && !w.Status.Completed
	})
	t.AwaitQuiet(2 * time.Second)
	resume()
	t.Completed("web")
}
