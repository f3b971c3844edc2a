package hardening

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/operator-workshop/03-client-go-controller/internal/myweb"
	webv1 "example.com/operator-workshop/03-client-go-controller/pkg/apis/myweb/v1"
)

var noon = metav1.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// live are children of a MyWeb with three pods, all of them ready.
type live struct {
	pods *appsv1.Deployment
	port int32
}

func (l *live) status(web *webv1.MyWeb, blocked *myweb.ConditionError, now time.Time) webv1.MyWebStatus {
	service := &corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", NodePort: l.port}}}}
	return myweb.StatusFor(web, l.pods, service, blocked, now)
}

func served(change []func(*live)) *live {
	l := &live{port: 30100, pods: &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{UID: "d", Generation: 2},
		Status: appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 3, UpdatedReplicas: 3,
			ReadyReplicas: 3, AvailableReplicas: 3}}}
	for _, f := range change {
		f(l)
	}
	return l
}

func TestHowLongAStatusCanWait(t *testing.T) {
	ready := func(n int32) func(*live) {
		return func(l *live) { l.pods.Status.ReadyReplicas, l.pods.Status.AvailableReplicas = n, n }
	}
	moving := func(ago time.Duration) func(*live) {
		return func(l *live) {
			l.pods.Status.Conditions = []appsv1.DeploymentCondition{{
				Type: appsv1.DeploymentProgressing, LastUpdateTime: metav1.Time{Time: noon.Add(-ago)}}}
		}
	}
	touched := func(l *live) { l.pods.Generation = 3 }
	type state struct {
		web     func(*webv1.MyWeb)
		change  []func(*live)
		blocked *myweb.ConditionError
	}
	conflict := &myweb.ConditionError{Reason: webv1.ReasonResourceConflict, Message: "ConfigMap site exists"}
	for name, test := range map[string]struct {
		reported *state // nil: nothing yet
		now      state
		want     time.Duration
	}{
		"nothing was reported": {nil, state{change: []func(*live){ready(1), moving(0)}}, 0},
		"the first pod of a rollout": {
			&state{change: []func(*live){ready(0)}}, state{change: []func(*live){ready(1), moving(0)}}, stalled},
		"one pod more": {&state{change: []func(*live){ready(1)}}, state{change: []func(*live){ready(2), moving(0)}}, stalled},
		"one pod less, others serve": {
			&state{change: []func(*live){ready(2)}}, state{change: []func(*live){ready(1), moving(0)}}, stalled},
		"one pod more, 3 s ago": {&state{change: []func(*live){ready(1)}},
			state{change: []func(*live){ready(2), moving(3 * time.Second)}}, 2 * time.Second},
		"it stands still for 5 s": {
			&state{change: []func(*live){ready(1)}}, state{change: []func(*live){ready(2), moving(stalled)}}, 0},
		"it stands still for an hour": {
			&state{change: []func(*live){ready(1)}}, state{change: []func(*live){ready(2), moving(time.Hour)}}, 0},
		"the last ready pod is lost": {
			&state{change: []func(*live){ready(1)}}, state{change: []func(*live){ready(0), moving(0)}}, 0},
		"all pods are ready": {&state{change: []func(*live){ready(2)}}, state{change: []func(*live){ready(3), moving(0)}}, 0},
		"a rollout begins":   {&state{change: []func(*live){ready(3)}}, state{change: []func(*live){ready(2), moving(0)}}, 0},
		"a new generation": {&state{change: []func(*live){ready(1)}},
			state{web: func(w *webv1.MyWeb) { w.Generation++ }, change: []func(*live){ready(2), moving(0)}}, 0},
		"a conflict": {
			&state{change: []func(*live){ready(1)}}, state{change: []func(*live){ready(2), moving(0)}, blocked: conflict}, 0},
		"a conflict that was reported": {&state{change: []func(*live){ready(1)}, blocked: conflict},
			state{change: []func(*live){ready(2), moving(0)}, blocked: conflict}, 0},
		"a Deployment without a condition": {
			&state{change: []func(*live){ready(1)}}, state{change: []func(*live){ready(2)}}, 0},
		"another node port": {&state{change: []func(*live){ready(1)}},
			state{change: []func(*live){ready(2), moving(0), func(l *live) { l.port = 31000 }}}, 0},
		"an older template moved": {
			&state{change: []func(*live){ready(1)}}, state{change: []func(*live){ready(2), moving(0), touched}}, stalled},
		"somebody touched it": {
			&state{change: []func(*live){ready(3)}}, state{change: []func(*live){ready(3), touched}}, stalled},
		"touched, and a conflict": {
			&state{change: []func(*live){ready(3)}}, state{change: []func(*live){ready(3), touched}, blocked: conflict}, 0},
		"touched by a new generation": {&state{change: []func(*live){ready(3)}},
			state{web: func(w *webv1.MyWeb) { w.Generation++ }, change: []func(*live){ready(3), touched}}, 0},
		"a new one, not yet seen": {&state{change: []func(*live){ready(3)}},
			state{change: []func(*live){ready(0), touched, func(l *live) { l.pods.Status.ObservedGeneration = 0 }}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			web := &webv1.MyWeb{ObjectMeta: metav1.ObjectMeta{Name: "site", Generation: 3},
				Spec: webv1.MyWebSpec{Replicas: new(int32(3))}}
			if test.reported != nil {
				web.Status = served(test.reported.change).status(web, test.reported.blocked, noon.Add(-time.Minute))
			}
			old := web.Status
			if test.now.web != nil {
				test.now.web(web)
			}
			now := served(test.now.change)
			status := now.status(web, test.now.blocked, noon.Time)
			if got := statusWriteDelay(old, status, now.pods, myweb.RolloutOf(now.pods), noon.Time); got != test.want {
				t.Errorf("it can wait %s, want %s", got, test.want)
			}
		})
	}
}
