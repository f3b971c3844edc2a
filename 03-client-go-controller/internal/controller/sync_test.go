package controller

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/operator-workshop/03-client-go-controller/internal/owned"
)

// These tests run the whole controller, with its caches, against a real API server. They check the objects
// in the end, and the requests that the controller sent.

// fewest are the requests that one MyWeb needs from creation to completed.
var fewest = map[string]int{"PATCH configmaps": 1, "PATCH deployments": 1, "PATCH services": 1, "PUT mywebs/status": 2}

func (f *fixture) sentExactly(want map[string]int) {
	f.Helper()
	if diff := cmp.Diff(want, f.requests()); diff != "" {
		f.Errorf("other requests than expected:\n%s", diff)
	}
}

// newRollout returns a fixture with a MyWeb that has three pods, none of them ready.
func newRollout(t *testing.T) *fixture {
	t.Helper()
	f := newFixture(t)
	f.start()
	f.create("site", three)
	f.Eventually(f.exists("Deployment", "site")).Should(BeTrue())
	return f
}

func TestPodsThatBecomeReadyOneByOneAreReportedOnce(t *testing.T) {
	t.Parallel()
	f := newRollout(t)
	for n := range int32(4) {
		f.rollout("site", func(d *appsv1.Deployment) {
			d.Status = ready(d, 3)
			d.Status.ReadyReplicas, d.Status.AvailableReplicas = n, n
			// LastUpdateTime is in the future, so that the rollout does not count as stalled on a slow machine.
			d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue,
				Reason: "ReplicaSetUpdated", LastUpdateTime: metav1.NewTime(time.Now().Add(time.Minute))}}
		})
		f.sync("site")
	}
	f.Eventually(f.completed("site")).Should(BeTrue())
	f.Consistently(f.requests).Should(Equal(fewest))
	if got := f.web("site").Status.ReadyReplicas; got != 3 {
		t.Errorf("%d pods are ready, says status", got)
	}
}

func TestAStalledRolloutIsReported(t *testing.T) {
	t.Parallel()
	f := newRollout(t)
	moved := time.Now()
	f.rollout("site", func(d *appsv1.Deployment) {
		d.Status = ready(d, 3)
		d.Status.ReadyReplicas, d.Status.AvailableReplicas = 1, 1
		d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue,
			Reason: "ReplicaSetUpdated", LastUpdateTime: metav1.Time{Time: moved}}}
	})
	f.sync("site")
	n := f.web("site").Status.ReadyReplicas
	if stalls := moved.Truncate(time.Second).Add(stalled); n != 0 && time.Now().Before(stalls) {
		t.Errorf("the rollout moved a moment ago, status reports %d pods already", n)
	}
	f.Eventually(func() int32 { return f.web("site").Status.ReadyReplicas }).Should(BeEquivalentTo(1))
	f.sentExactly(fewest)
}

func TestTheLossOfTheLastPodIsReportedAtOnce(t *testing.T) {
	t.Parallel()
	f := newServed(t)
	f.rollout("site", func(d *appsv1.Deployment) {
		d.Status.ReadyReplicas, d.Status.AvailableReplicas, d.Status.UnavailableReplicas = 0, 0, 1
	})
	f.Eventually(f.condition("site", owned.Available)).Should(Equal("False NoReadyPod"))
	if s := f.web("site").Status; s.Completed || s.ReadyReplicas != 0 {
		t.Errorf("no pod is ready, status reports %+v", s)
	}
}

func replace(path, value string) string {
	return fmt.Sprintf(`[{"op":"replace","path":%q,"value":%s}]`, path, value)
}

func removal(path string) string { return fmt.Sprintf(`[{"op":"remove","path":%q}]`, path) }

func TestAnAllocatedNodePortSurvivesWhatOthersDoToThePort(t *testing.T) {
	t.Parallel()
	f := newServed(t)
	before := f.child("Service", "site").(*corev1.Service).Spec
	f.patch("Service", "site", replace("/spec/ports/0/port", "81"))
	f.Eventually(func() string {
		return cmp.Diff(before, f.child("Service", "site").(*corev1.Service).Spec)
	}, atOnce).Should(BeEmpty())
	f.sync("site")
	if got := f.web("site").Status.NodePort; got != before.Ports[0].NodePort {
		t.Errorf("the page was served on port %d, now on %d", before.Ports[0].NodePort, got)
	}
}
