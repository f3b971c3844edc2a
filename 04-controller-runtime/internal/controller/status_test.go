package controller

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
)

var noon = metav1.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// served returns children that serve a MyWeb fully, then changed.
func served(web *webv1.MyWeb, change ...func(*children)) *children {
	owner := []metav1.OwnerReference{{UID: web.UID, Controller: new(true)}}
	n := replicas(web)
	c := &children{
		page: &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{UID: "c", OwnerReferences: owner}},
		pods: &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{UID: "d", Generation: 2, OwnerReferences: owner},
			Status: appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: n, UpdatedReplicas: n,
				ReadyReplicas: n, AvailableReplicas: n},
		},
		service: &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{UID: "s", OwnerReferences: owner},
			Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", NodePort: 30100}}},
		},
	}
	for _, f := range change {
		f(c)
	}
	return c
}

func TestStatusTellsTheTruth(t *testing.T) {
	deadline := func(c *children) {
		c.pods.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing,
			Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded", Message: "too long"}}
	}
	for name, test := range map[string]struct {
		web                              *webv1.MyWeb
		change                           func(*children)
		what                             *obstacle
		completed                        bool
		ready                            int32
		available, progressing, degraded string
	}{
		"fully served": {completed: true, ready: 1, available: "Serving", progressing: "Complete", degraded: "AsExpected"},
		"nothing made yet": {change: func(c *children) {
			c.pods, c.service = &appsv1.Deployment{}, &corev1.Service{}
		}, available: "NoReadyPod", progressing: "RollingOut", degraded: "AsExpected"},
		"no pod ready": {change: func(c *children) { c.pods.Status.ReadyReplicas, c.pods.Status.AvailableReplicas = 0, 0 },
			available: "NoReadyPod", progressing: "RollingOut", degraded: "AsExpected"},
		"the Deployment was not looked at yet": {change: func(c *children) { c.pods.Generation = 3 },
			ready: 1, available: "Serving", progressing: "RollingOut", degraded: "AsExpected"},
		"an old pod is still there": {change: func(c *children) { c.pods.Status.Replicas = 2 },
			ready: 1, available: "Serving", progressing: "RollingOut", degraded: "AsExpected"},
		"ready, but not for long enough": {change: func(c *children) { c.pods.Status.AvailableReplicas = 0 },
			ready: 1, available: "Serving", progressing: "RollingOut", degraded: "AsExpected"},
		"no port yet": {change: func(c *children) { c.service.Spec.Ports[0].NodePort = 0 },
			ready: 1, available: "Serving", progressing: "RollingOut", degraded: "AsExpected"},
		"scaled to zero": {web: myWeb(func(w *webv1.MyWeb) { w.Spec.Replicas = new(int32(0)) }),
			completed: true, available: "ScaledToZero", progressing: "Complete", degraded: "AsExpected"},
		"a deadline passed, old pods serve": {change: func(c *children) { c.pods.Status.UpdatedReplicas = 0; deadline(c) },
			ready: 1, available: "Serving", progressing: "ProgressDeadlineExceeded", degraded: "ProgressDeadlineExceeded"},
		"a deadline passed, for an older template": {change: func(c *children) { c.pods.Generation = 3; deadline(c) },
			ready: 1, available: "Serving", progressing: "RollingOut", degraded: "AsExpected"},
		"an obstacle": {what: &obstacle{webv1.ReasonResourceConflict, "ConfigMap site exists"},
			ready: 1, available: "Serving", progressing: "ResourceConflict", degraded: "ResourceConflict"},
		"a Deployment of somebody else": {change: func(c *children) { c.pods.OwnerReferences = nil },
			what:      &obstacle{webv1.ReasonResourceConflict, "Deployment site exists"},
			available: "NoReadyPod", progressing: "ResourceConflict", degraded: "ResourceConflict"},
	} {
		t.Run(name, func(t *testing.T) {
			if test.web == nil {
				test.web = myWeb()
			}
			if test.change == nil {
				test.change = func(*children) {}
			}
			got := statusFor(test.web, served(test.web, test.change), test.what, noon)
			if got.Completed != test.completed || got.ReadyReplicas != test.ready {
				t.Errorf("completed %v, ready %d; want %v, %d", got.Completed, got.ReadyReplicas, test.completed, test.ready)
			}
			reasons := map[string]string{}
			for _, c := range got.Conditions {
				reasons[c.Type] = c.Reason
				if c.ObservedGeneration != 3 || c.Message == "" {
					t.Errorf("condition %+v lacks its generation or message", c)
				}
			}
			want := map[string]string{"Available": test.available, "Progressing": test.progressing, "Degraded": test.degraded}
			if diff := cmp.Diff(want, reasons); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTimesMoveOnlyWithTheStatusOfACondition(t *testing.T) {
	web := myWeb()
	web.Status = statusFor(web, served(web, func(c *children) { c.pods.Status.AvailableReplicas = 0 }), nil, noon)
	later := metav1.Time{Time: noon.Add(time.Hour)}
	web.Generation++
	got := statusFor(web, served(web), nil, later)
	if at := meta.FindStatusCondition(got.Conditions, webv1.ConditionAvailable).LastTransitionTime; !at.Equal(&noon) {
		t.Errorf("Available stayed True, its time moved to %s", at)
	}
	if at := meta.FindStatusCondition(got.Conditions, webv1.ConditionProgressing).LastTransitionTime; !at.Equal(&later) {
		t.Errorf("Progressing became False, its time stayed %s", at)
	}
	web.Status = got
	if diff := cmp.Diff(got, statusFor(web, served(web), nil, metav1.Time{Time: later.Add(time.Hour)})); diff != "" {
		t.Errorf("the same state gives another status:\n%s", diff)
	}
}
