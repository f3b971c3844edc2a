package examine

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"example.com/operator-workshop/scripts/examine/ledger"
	"example.com/operator-workshop/scripts/examine/wire"
)

// converged returns nil when all objects that the operator asked for exist: the API server refuses no write, the
// created objects exist, and the pods of the sample run. It ignores a condition Ready.
func (t *trial) converged() error {
	writes := t.Writes(0)
	if err := beingRefused(writes); err != nil {
		return err
	}
	if err := t.stillThere(writes); err != nil {
		return err
	}
	if t.target.cluster {
		return nil
	}
	return t.podsRun()
}

// An objectKey names the object of a write.
type objectKey struct{ what, namespace, name string }

// beingRefused returns an error when the API server refused the last write of an object.
func beingRefused(writes []ledger.Entry) error {
	last, count := map[objectKey]ledger.Entry{}, map[objectKey][2]int{} // refused writes, and all writes
	var order []objectKey
	for _, e := range writes {
		k := objectKey{e.FullResource(), e.Namespace, e.Name}
		if _, known := last[k]; !known {
			order = append(order, k)
		}
		n := count[k]
		if n[1]++; isRefused(e) {
			n[0]++
		}
		last[k], count[k] = e, n
	}
	for _, k := range order {
		e, n := last[k], count[k]
		if isRefused(e) {
			return refusedError{e, n[0], n[1]}
		}
	}
	return nil
}

// isRefused reports whether the API server refused a write. A conflict, and an object that already exists or is
// already gone, are part of normal operation.
func isRefused(e ledger.Entry) bool {
	gone := e.Code == http.StatusNotFound && e.Verb != wire.Create && e.Verb != wire.Apply
	return e.Code >= http.StatusBadRequest && e.Code != http.StatusConflict && !gone
}

// A refusedError names the write that the API server refuses.
type refusedError struct {
	last         ledger.Entry
	refused, all int
}

func (e refusedError) Error() string {
	return fmt.Sprintf("%d of %d requests %s %s %s were refused with %d: %s", e.refused, e.all, e.last.Verb, e.last.FullResource(),
		e.last.Name, e.last.Code, e.last.Message)
}

// stillThere returns an error when an object that the operator created, and did not delete, is gone.
func (t *trial) stillThere(writes []ledger.Entry) error {
	made := map[objectKey]ledger.Entry{}
	for _, e := range writes {
		k := objectKey{e.FullResource(), e.Namespace, e.Name}
		switch {
		case e.Verb == wire.Delete || e.Verb == wire.DeleteCollection:
			delete(made, k)
		case e.Name != "" && e.Subresource == "" && slices.Contains(e.Served, http.StatusCreated):
			made[k] = e
		}
	}
	for _, e := range made {
		for _, c := range t.childrenOf([]ledger.Entry{e}) {
			if _, err := t.at(c).Get(t.Ctx, c.Name, metav1.GetOptions{}); apierrors.IsNotFound(err) {
				return fmt.Errorf("%s was created and is gone", c)
			}
		}
	}
	return nil
}

// podsRun returns an error when a pod in the namespace does not run, or a workload has fewer pods than it should
// have.
func (t *trial) podsRun() error {
	pods, err := t.fixture.Kube.CoreV1().Pods(t.Namespace).List(t.Ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, p := range pods.Items {
		if p.Status.Phase == corev1.PodRunning || p.Status.Phase == corev1.PodSucceeded || p.DeletionTimestamp != nil {
			continue
		}
		why := string(p.Status.Phase)
		for _, c := range p.Status.Conditions {
			if c.Status != corev1.ConditionTrue && c.Message != "" {
				why += ": " + c.Message
			}
		}
		return fmt.Errorf("the pod %s is %s", p.Name, why)
	}
	deployments, err := t.fixture.Kube.AppsV1().Deployments(t.Namespace).List(t.Ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, d := range deployments.Items {
		why := failureOf(d.Status.Conditions)
		if err := enough("Deployment "+d.Name, d.Spec.Replicas, d.Status.ReadyReplicas, why); err != nil {
			return err
		}
	}
	jobs, err := t.fixture.Kube.BatchV1().Jobs(t.Namespace).List(t.Ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, j := range jobs.Items {
		stands := ptr.Deref(j.Spec.Suspend, false) || ptr.Deref(j.Spec.Parallelism, 1) == 0
		if !stands && !hasEnded(j, time.Time{}) {
			return fmt.Errorf("the Job %s has not ended", j.Name)
		}
	}
	sets, err := t.fixture.Kube.AppsV1().StatefulSets(t.Namespace).List(t.Ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, s := range sets.Items {
		if err := enough("StatefulSet "+s.Name, s.Spec.Replicas, s.Status.ReadyReplicas, ""); err != nil {
			return err
		}
	}
	return nil
}

// failureOf says why a Deployment gets no pods.
func failureOf(conditions []appsv1.DeploymentCondition) string {
	for _, c := range conditions {
		if c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue {
			return ": " + c.Message
		}
	}
	return ""
}

func enough(what string, want *int32, ready int32, why string) error {
	if n := *want; ready < n {
		return fmt.Errorf("%s has %d of %d pods ready%s", what, ready, n, why)
	}
	return nil
}

// errorLine is a line of a log that reports an error: of zap, logr, slog, klog or a development logger.
var errorLine = regexp.MustCompile(`(?i:"?level"?\s*[=:]\s*"?error\b)|\bERROR\b|^E\d{4} `)

var errFailing = errors.New("its reconciles end in errors")

// A failing watches whether errors about a sample grow. Exponential backoff doubles the pauses between them: each is
// about as long as the time since the first error. So failing trusts that they have ended only after a pause that is
// twice as long.
type failing struct {
	count       int
	looked      time.Time // when there were count errors the last time
	first, last time.Time // no later than the first error, no earlier than the last one
	line        string
	namespace   *regexp.Regexp
}

func (t *trial) newFailing() *failing {
	return &failing{looked: time.Now(), namespace: regexp.MustCompile(`\b` + regexp.QuoteMeta(t.Namespace) + `\b`)}
}

// look counts errors again, in the operator's output and in its metrics.
func (f *failing) look(t *trial, m metrics) error {
	count := m.errors - t.errorsBefore
	if p := t.operator.Process(); p != nil {
		logged := 0
		for line := range strings.Lines(p.Output()) {
			if errorLine.MatchString(line) && f.namespace.MatchString(line) {
				logged++
				f.line = strings.TrimSpace(line)
			}
		}
		count = max(count, logged)
	}
	now := time.Now()
	if count > f.count {
		if f.count == 0 {
			f.first = f.looked
		}
		f.count, f.last = count, now
	}
	f.looked = now
	if f.count == 0 || now.Sub(f.last) > max(time.Second, 2*f.last.Sub(f.first)) {
		return nil
	}
	err := fmt.Errorf("%w: %d so far", errFailing, f.count)
	if f.line != "" {
		err = fmt.Errorf("%w, the last one: %s", err, shortened(f.line, 400))
	}
	return err
}

func shortened(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n], "") + "…"
}

// whatToDo is the advice about a sample that does not converge.
func whatToDo(err error) string {
	var refused refusedError
	switch {
	case errors.As(err, &refused) && refused.last.Code == http.StatusForbidden:
		return "give its permissions in ROLE=, or leave ROLE= out"
	case errors.As(err, &refused) && refused.last.Code == http.StatusNotFound:
		return "the kind or the namespace does not exist here: add its CRD to CRD=, or the missing object to NEEDS="
	case errors.As(err, &refused):
		return "often webhooks set defaults, and they are off: name their manifests in WEBHOOKS=, or write the fields into " +
			"the sample"
	case isCallError(err):
		return "the API server cannot call the program's webhooks: compare the caBundle with the certificate that it serves"
	case errors.As(err, new(podError)) && errors.Is(err, errFailing): // no definition of ready accepts errors
		return "the lab runs no containers, so no pod answers: switch off what asks the pods (ARGS=, ENV=, a field of the " +
			"sample), or run this operator in a cluster with containers"
	case errors.As(err, new(podError)):
		return "the lab runs no containers, so no pod answers: name the state before that in READY=, switch off what asks the " +
			"pods (ARGS=, ENV=), or run this operator in a cluster with containers"
	case errors.As(err, new(underWayError)):
		return "find the call that does not return, often a connection without a timeout. The lab runs no containers, so no " +
			"pod answers: switch off what asks the pods (ARGS=, ENV=), or run this operator in a cluster with containers"
	case errors.Is(err, errFailing):
		return "look at the operator's output, and give it the missing objects and settings by NEEDS=, ARGS= and ENV="
	}
	return "check SAMPLE=, its prerequisites (NEEDS=), and the definition of ready (READY={.status.phase}=Running, or a " +
		"condition). The lab runs no containers, so a state that only a container can cause, such as a label on its pod, " +
		"never comes"
}
