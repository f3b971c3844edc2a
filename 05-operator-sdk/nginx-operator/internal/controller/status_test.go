package controller

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	proxyv1alpha1 "github.com/example/nginx-operator/api/v1alpha1"
	"github.com/example/nginx-operator/internal/owned"
)

// deployment returns a Deployment of generation 5 with this number of pods, all ready.
func deployment(ready int32, change ...func(*appsv1.Deployment)) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{UID: "d-1", Generation: 5},
		Status: appsv1.DeploymentStatus{ObservedGeneration: 5, Replicas: ready, UpdatedReplicas: ready, ReadyReplicas: ready,
			AvailableReplicas: ready}}
	for _, f := range change {
		f(d)
	}
	return d
}

func TestStatusFor(t *testing.T) {
	now := time.Unix(1000, 0)
	missing := &owned.ConditionError{Reason: proxyv1alpha1.ReasonContentNotFound, Message: "create it"}
	for name, test := range map[string]struct {
		count                            int32
		pods                             *appsv1.Deployment
		what                             *owned.ConditionError
		ready                            int32
		available, progressing, degraded string
	}{
		"nothing is there yet": {3, &appsv1.Deployment{}, nil, 0, "False NoReadyPod", "True RollingOut",
			"False AsExpected"},
		"all pods are ready":      {3, deployment(3), nil, 3, "True Serving", "False Complete", "False AsExpected"},
		"one of three is ready":   {3, deployment(1), nil, 1, "True Serving", "True RollingOut", "False AsExpected"},
		"one more than asked for": {2, deployment(3), nil, 3, "True Serving", "True RollingOut", "False AsExpected"},
		"none is asked for":       {0, deployment(0), nil, 0, "False ScaledToZero", "False Complete", "False AsExpected"},
		"content lost, pods ready": {
			3, deployment(3), missing, 3, "True Serving", "False ContentNotFound", "True ContentNotFound"},
		"content was never there": {
			3, &appsv1.Deployment{}, missing, 0, "False NoReadyPod", "False ContentNotFound", "True ContentNotFound"},
		"an old Deployment goes": {3, deployment(3), &owned.ConditionError{
			Reason: "WaitingForDeletion", Transient: true}, 3, "True Serving", "True WaitingForDeletion", "False AsExpected"},
		"the pods never get ready": {3, deployment(0, gaveUp), nil, 0, "False NoReadyPod", "False ProgressDeadlineExceeded",
			"True ProgressDeadlineExceeded"},
		"some of the new pods fail": {3, deployment(2, gaveUp), nil, 2, "True Serving", "False ProgressDeadlineExceeded",
			"True ProgressDeadlineExceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			nginx := anNginx(func(n *proxyv1alpha1.Nginx) { n.Spec.Count = test.count })
			status := statusFor(nginx, test.pods, []string{"a", "b"}, test.what, now)
			got := map[string]string{}
			for _, c := range status.Conditions {
				got[c.Type] = string(c.Status) + " " + c.Reason
				if c.ObservedGeneration != 3 || !c.LastTransitionTime.Time.Equal(now) || c.Message == "" && test.what == nil {
					t.Errorf("condition %+v", c)
				}
			}
			want := map[string]string{"Available": test.available, "Progressing": test.progressing, "Degraded": test.degraded}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			status.Conditions = nil
			rest := proxyv1alpha1.NginxStatus{Nodes: []string{"a", "b"}, ReadyReplicas: test.ready, ObservedGeneration: 3,
				Selector: "app.kubernetes.io/instance=site,app.kubernetes.io/name=nginx"}
			if diff := cmp.Diff(rest, status); diff != "" {
				t.Error(diff)
			}
			if nginx.Status.Selector != "" {
				t.Error("the Nginx that was read was changed")
			}
		})
	}
}

func gaveUp(d *appsv1.Deployment) {
	d.Status.UpdatedReplicas = 1
	d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: "False",
		Reason: "ProgressDeadlineExceeded", Message: "it took too long"}}
}
