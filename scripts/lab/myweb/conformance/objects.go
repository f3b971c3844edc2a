package conformance

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/operator-workshop/scripts/lab/engine/ledger"
	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

// status is the need of checks about a status.
var status = []suite.Need{suite.Status}

// quiet is how long the operator must not write to be in steady state.
const quiet = 300 * time.Millisecond

// accepted returns the entries that the API server answered with success.
func accepted(entries []ledger.Entry) []ledger.Entry {
	return slices.DeleteFunc(slices.Clone(entries), func(e ledger.Entry) bool { return !e.Accepted() })
}

// onlyWrites fails the check unless the operator wrote after the mark only one child of the given resource, once.
// Writes of it that were refused as a conflict do not count.
func onlyWrites(t *suite.T, mark int, resource string) {
	writes := t.Writes(mark)
	if mine := accepted(suite.About(writes, resource)); len(mine) != 1 {
		t.Errorf("expected 1 write of %s; but the operator sent %d:%s", resource, len(mine), suite.Lines(mine))
	}
	for _, k := range suite.Kinds {
		if others := suite.About(writes, k); k != resource && len(others) > 0 {
			t.Unexpected(others, "expected no write of %s; but the operator sent %d", k, len(others))
		}
	}
}

// pods are the pods that a selector finds, except those that are being deleted.
func pods(t *suite.T, selector string) []corev1.Pod {
	list, err := t.Fixture.Kube.CoreV1().Pods(t.Namespace).List(t.Context(), metav1.ListOptions{LabelSelector: selector})
	t.Must(err, "list pods")
	return slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil })
}

// podsOf are the pods of a MyWeb: by the selector of its status or, when the status has none, of its Deployment.
func podsOf(t *suite.T, web *suite.Web) []corev1.Pod {
	if t.Reports() {
		return pods(t, web.Status.Selector)
	}
	return pods(t, metav1.FormatLabelSelector(t.Children(web).Deployment.Spec.Selector))
}

func uids(pods []corev1.Pod) (all []types.UID) {
	for _, p := range pods {
		all = append(all, p.UID)
	}
	slices.Sort(all)
	return all
}

// recordings are the operator's requests about events of the check's namespace after a mark, including those that the
// API server did not accept, such as an increment of an existing event's counter.
func recordings(t *suite.T, mark int) []ledger.Entry {
	return t.Fixture.Ledger.Entries(ledger.Match{
		Verbs: []string{"create", "update", "patch", "apply"}, Namespace: t.Namespace,
		Resources: []string{"events", "events.events.k8s.io"}, After: max(mark, 1),
		Where: func(e ledger.Entry) bool { return strings.HasPrefix(e.User, t.Operator.User.Name) }})
}

// awaitNoMoreEvents returns when the operator recorded no event for a time.
func awaitNoMoreEvents(t *suite.T, window time.Duration) {
	last, since := -1, time.Now()
	t.Eventually("the operator records no more events", 0, func() error {
		if n := len(recordings(t, 0)); n != last {
			last, since = n, time.Now()
		}
		if past := time.Since(since); past < window {
			return fmt.Errorf("%d by now, the last one %v ago", last, past)
		}
		return nil
	})
}
