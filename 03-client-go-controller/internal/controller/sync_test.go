package controller

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/operator-workshop/03-client-go-controller/internal/owned"
	webv1 "example.com/operator-workshop/03-client-go-controller/pkg/apis/myweb/v1"
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

func TestAStalledRolloutIsReported(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.start()
	f.create("site", func(w *webv1.MyWeb) { w.Spec.Replicas = new(int32(3)) })
	f.Eventually(f.exists("Deployment", "site")).Should(BeTrue())
	moved := time.Now()
	f.rollout("site", func(d *appsv1.Deployment) {
		d.Status = ready(d, 3)
		d.Status.ReadyReplicas, d.Status.AvailableReplicas = 1, 1
		d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue,
			Reason: "ReplicaSetUpdated", LastUpdateTime: metav1.Time{Time: moved}}}
	})
	f.sync("site")
	n := f.web("site").Status.ReadyReplicas
	if stalls := moved.Truncate(time.Second).Add(owned.Stalled); n != 0 && time.Now().Before(stalls) {
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
