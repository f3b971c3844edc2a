package myweb

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
	"example.com/operator-workshop/04-controller-runtime/internal/owned"
	"example.com/operator-workshop/04-controller-runtime/test/mywebtest"
)

var noon = metav1.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// live are the children that StatusFor reads.
type live struct {
	pods    *appsv1.Deployment
	service *corev1.Service
}

// served returns children that serve a MyWeb fully, with the given changes.
func served(web *webv1.MyWeb, change ...func(*live)) []*owned.Child {
	owner := []metav1.OwnerReference{{
		APIVersion: "operator.k8s-summit.org/v1", Kind: "MyWeb", UID: web.UID, Controller: new(true)}}
	n := replicas(web)
	l := &live{
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
		f(l)
	}
	all := DesiredChildren(web)
	if l.pods != nil {
		all[1].Live = l.pods
	}
	if l.service != nil {
		all[2].Live = l.service
	}
	return all
}

func statusOf(web *webv1.MyWeb, children []*owned.Child, blocked *owned.ConditionError, now time.Time) webv1.MyWebStatus {
	deployment, service := LiveOf(children)
	return StatusFor(web, deployment, service, blocked, now)
}

func three(w *webv1.MyWeb) { w.Spec.Replicas = new(int32(3)) }

func progress(status corev1.ConditionStatus, reason string, updated time.Time) func(*live) {
	return func(l *live) {
		l.pods.Status.Conditions = append(l.pods.Status.Conditions,
			appsv1.DeploymentCondition{Type: appsv1.DeploymentAvailable},
			appsv1.DeploymentCondition{Type: appsv1.DeploymentProgressing, Status: status, Reason: reason, Message: "too long",
				LastUpdateTime: metav1.Time{Time: updated}})
	}
}

var (
	// late is a rollout whose new pod did not come in time.
	late = func(l *live) {
		l.pods.Status.UpdatedReplicas = 0
		progress(corev1.ConditionFalse, "ProgressDeadlineExceeded", noon.Time)(l)
	}
	// refused is a rollout whose new pod the cluster refuses.
	refused = func(l *live) {
		l.pods.Status.UpdatedReplicas = 0
		l.pods.Status.Conditions = append(l.pods.Status.Conditions, appsv1.DeploymentCondition{
			Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: "quota"})
	}
	paused    = func(l *live) { l.pods.Spec.Paused = true }
	aConflict = &owned.ConditionError{Reason: owned.ReasonResourceConflict, Message: "ConfigMap site exists"}
	aDeletion = &owned.ConditionError{Reason: owned.ReasonWaitingForDeletion,
		Message: "ConfigMap site is being deleted", Transient: true}
)

type situation struct {
	web                              func(*webv1.MyWeb)
	change                           func(*live)
	blocked                          *owned.ConditionError
	completed                        bool
	ready                            int32
	available, progressing, degraded string
}

var situations = map[string]situation{
	"fully served": {completed: true, ready: 1, available: "True Serving", progressing: "False Complete",
		degraded: "False AsExpected"},
	"nothing made yet": {change: func(l *live) { l.pods, l.service = nil, nil },
		available: "False NoReadyPod", progressing: "True RollingOut", degraded: "False AsExpected"},
	"nothing made yet, and no pod wanted": {web: func(w *webv1.MyWeb) { w.Spec.Replicas = new(int32(0)) },
		change:    func(l *live) { l.pods, l.service = nil, nil },
		available: "False ScaledToZero", progressing: "True RollingOut", degraded: "False AsExpected"},
	"no pod ready": {change: func(l *live) { l.pods.Status.ReadyReplicas, l.pods.Status.AvailableReplicas = 0, 0 },
		available: "False NoReadyPod", progressing: "True RollingOut", degraded: "False AsExpected"},
	"the Deployment controller did not observe it yet": {change: func(l *live) { l.pods.Generation = 3 },
		ready: 1, available: "True Serving", progressing: "True RollingOut", degraded: "False AsExpected"},
	"an old pod is still there": {change: func(l *live) { l.pods.Status.Replicas = 2 },
		ready: 1, available: "True Serving", progressing: "True RollingOut", degraded: "False AsExpected"},
	"only old pods": {change: func(l *live) { l.pods.Status.UpdatedReplicas = 0 },
		ready: 1, available: "True Serving", progressing: "True RollingOut", degraded: "False AsExpected"},
	"ready, but not for long enough": {change: func(l *live) { l.pods.Status.AvailableReplicas = 0 },
		ready: 1, available: "True Serving", progressing: "True RollingOut", degraded: "False AsExpected"},
	"two of three": {
		web: three, change: func(l *live) { l.pods.Status.ReadyReplicas, l.pods.Status.AvailableReplicas = 2, 2 },
		ready: 2, available: "True Serving", progressing: "True RollingOut", degraded: "False AsExpected"},
	"three of three": {web: three, completed: true, ready: 3,
		available: "True Serving", progressing: "False Complete", degraded: "False AsExpected"},
	"a port of others before": {change: func(l *live) {
		l.service.Spec.Ports = append([]corev1.ServicePort{{Name: "metrics", NodePort: 32000}}, l.service.Spec.Ports...)
	}, completed: true, ready: 1, available: "True Serving", progressing: "False Complete", degraded: "False AsExpected"},
	"scaled to zero": {web: func(w *webv1.MyWeb) { w.Spec.Replicas = new(int32(0)) },
		completed: true, available: "False ScaledToZero", progressing: "False Complete", degraded: "False AsExpected"},
	"scaled to zero, a pod still runs": {web: func(w *webv1.MyWeb) { w.Spec.Replicas = new(int32(0)) },
		change: func(l *live) { l.pods.Status.Replicas, l.pods.Status.ReadyReplicas = 1, 1 },
		ready:  1, available: "True Serving", progressing: "True RollingOut", degraded: "False AsExpected"},
	"the Deployment is being deleted": {change: func(l *live) { l.pods.DeletionTimestamp = &noon }, blocked: aDeletion,
		ready: 1, available: "True Serving", progressing: "True WaitingForDeletion", degraded: "False AsExpected"},
	"the Deployment is being deleted, without a conflict": {change: func(l *live) { l.pods.DeletionTimestamp = &noon },
		ready: 1, available: "True Serving", progressing: "True RollingOut", degraded: "False AsExpected"},
	"a deadline passed, old pods serve": {change: late,
		ready: 1, available: "True Serving", progressing: "False ProgressDeadlineExceeded",
		degraded: "True ProgressDeadlineExceeded"},
	"a deadline passed, no pod serves": {
		change:    func(l *live) { l.pods.Status.ReadyReplicas, l.pods.Status.AvailableReplicas = 0, 0; late(l) },
		available: "False NoReadyPod", progressing: "False ProgressDeadlineExceeded",
		degraded: "True ProgressDeadlineExceeded"},
	"a deadline passed, for an older template": {change: func(l *live) { l.pods.Generation = 3; late(l) },
		ready: 1, available: "True Serving", progressing: "True RollingOut", degraded: "False AsExpected"},
	"pods are refused, old pods serve": {change: refused,
		ready: 1, available: "True Serving", progressing: "False ReplicaFailure", degraded: "True ReplicaFailure"},
	"pods are refused, and a deadline passed": {change: func(l *live) { late(l); refused(l) },
		ready: 1, available: "True Serving", progressing: "False ReplicaFailure", degraded: "True ReplicaFailure"},
	"pods are refused, and somebody touched the Deployment": {change: func(l *live) { l.pods.Generation = 3; refused(l) },
		ready: 1, available: "True Serving", progressing: "False ReplicaFailure", degraded: "True ReplicaFailure"},
	"pods were refused, and all serve": {change: func(l *live) { refused(l); l.pods.Status.UpdatedReplicas = 1 },
		completed: true, ready: 1, available: "True Serving", progressing: "False Complete", degraded: "False AsExpected"},
	"a ReplicaSet is refused, not yet observed": {
		change: func(l *live) {
			l.pods.Generation = 3
			progress(corev1.ConditionFalse, "ReplicaSetCreateError", noon.Time)(l)
		},
		ready: 1, available: "True Serving", progressing: "False ReplicaFailure", degraded: "True ReplicaFailure"},
	"pods are refused, and a conflict": {change: refused, blocked: aConflict,
		ready: 1, available: "True Serving", progressing: "False ResourceConflict", degraded: "True ResourceConflict"},
	"paused, a rollout waits": {change: func(l *live) { late(l); refused(l); paused(l) },
		ready: 1, available: "True Serving", progressing: "False DeploymentPaused", degraded: "True DeploymentPaused"},
	"paused, in the middle of a rollout": {change: func(l *live) { paused(l); l.pods.Status.Replicas = 2 },
		ready: 1, available: "True Serving", progressing: "False DeploymentPaused", degraded: "True DeploymentPaused"},
	"paused, and all serve": {change: paused, completed: true, ready: 1,
		available: "True Serving", progressing: "False Complete", degraded: "False AsExpected"},
	"paused, and it scales": {web: three, change: func(l *live) {
		paused(l)
		l.pods.Status.Replicas, l.pods.Status.UpdatedReplicas, l.pods.Status.ReadyReplicas = 2, 2, 1
	}, ready: 1, available: "True Serving", progressing: "True RollingOut", degraded: "False AsExpected"},
	"a deadline passed, and a conflict": {change: late, blocked: aConflict,
		ready: 1, available: "True Serving", progressing: "False ResourceConflict", degraded: "True ResourceConflict"},
	"a deadline passed, and a transient conflict": {change: late, blocked: aDeletion,
		ready: 1, available: "True Serving", progressing: "False ProgressDeadlineExceeded",
		degraded: "True ProgressDeadlineExceeded"},
	"a conflict": {blocked: aConflict,
		ready: 1, available: "True Serving", progressing: "False ResourceConflict", degraded: "True ResourceConflict"},
	"a transient conflict": {blocked: aDeletion,
		ready: 1, available: "True Serving", progressing: "True WaitingForDeletion", degraded: "False AsExpected"},
}

func TestStatusIsTrue(t *testing.T) {
	for name, test := range situations {
		t.Run(name, func(t *testing.T) {
			web := mywebtest.New()
			if test.web != nil {
				test.web(web)
			}
			if test.change == nil {
				test.change = func(*live) {}
			}
			got := statusOf(web, served(web, test.change), test.blocked, noon.Time)
			if got.Completed != test.completed || got.ReadyReplicas != test.ready || got.ObservedGeneration != 3 {
				t.Errorf("completed %v, ready %d, of generation %d; want %v, %d, 3", got.Completed, got.ReadyReplicas,
					got.ObservedGeneration, test.completed, test.ready)
			}
			for kind, want := range map[string]string{owned.Available: test.available,
				owned.Progressing: test.progressing, owned.Degraded: test.degraded} {
				c := meta.FindStatusCondition(got.Conditions, kind)
				if is := string(c.Status) + " " + c.Reason; is != want || c.ObservedGeneration != 3 || c.Message == "" ||
					!c.LastTransitionTime.Equal(&noon) {
					t.Errorf("%s is %+v, want %s", kind, c, want)
				}
			}
		})
	}
}

func TestStatusNamesPortSelectorAndConflict(t *testing.T) {
	blocked := &owned.ConditionError{Reason: owned.ReasonResourceConflict, Message: "ConfigMap site exists"}
	got := statusOf(mywebtest.New(), served(mywebtest.New()), blocked, noon.Time)
	if got.NodePort != 30100 || got.Selector != "app.kubernetes.io/instance=site,app.kubernetes.io/name=myweb" {
		t.Errorf("node port %d, selector %q", got.NodePort, got.Selector)
	}
	for _, kind := range []string{owned.Degraded, owned.Progressing} {
		if c := meta.FindStatusCondition(got.Conditions, kind); c.Message != blocked.Message {
			t.Errorf("%s says %q", kind, c.Message)
		}
	}
}

func TestTheTimeOfAConditionMovesOnlyWithItsStatus(t *testing.T) {
	later := noon.Add(time.Hour)
	web := mywebtest.New()
	web.Status = statusOf(web, served(web), nil, noon.Time)
	web.Generation++ // every condition speaks of another generation now
	rolling := func(l *live) { l.pods.Status.UpdatedReplicas = 0 }
	got := statusOf(web, served(web, rolling), nil, later)
	for kind, want := range map[string]time.Time{owned.Available: noon.Time,
		owned.Progressing: later, owned.Degraded: noon.Time} {
		if c := meta.FindStatusCondition(got.Conditions, kind); !c.LastTransitionTime.Time.Equal(want) ||
			c.ObservedGeneration != 4 {
			t.Errorf("%s moved at %s, of generation %d; want %s, 4", kind, c.LastTransitionTime, c.ObservedGeneration, want)
		}
	}
}

func TestTheSameStateGivesTheSameStatus(t *testing.T) {
	web := mywebtest.New()
	web.Status = statusOf(web, served(web), nil, noon.Time)
	web.Status.Conditions = append(web.Status.Conditions, metav1.Condition{Type: "OfOthers", Status: metav1.ConditionTrue})
	if diff := cmp.Diff(web.Status, statusOf(web, served(web), nil, noon.Add(time.Hour))); diff != "" {
		t.Error(diff)
	}
}
