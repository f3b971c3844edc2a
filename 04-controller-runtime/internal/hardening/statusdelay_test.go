package hardening

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
	"example.com/operator-workshop/04-controller-runtime/internal/myweb"
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

// seen is what is found of a MyWeb.
type seen struct {
	renewed bool // by a new generation
	change  []func(*live)
	blocked *myweb.ConditionError
}

// pods are so many ready ones.
func pods(ready int32, change ...func(*live)) seen {
	return seen{change: append(change, func(l *live) {
		l.pods.Status.ReadyReplicas, l.pods.Status.AvailableReplicas = ready, ready
	})}
}

func (s seen) with(conflict *myweb.ConditionError) seen { s.blocked = conflict; return s }

func (s seen) ofANewGeneration() seen { s.renewed = true; return s }

func moving(ago time.Duration) func(*live) {
	return func(l *live) {
		l.pods.Status.Conditions = []appsv1.DeploymentCondition{{
			Type: appsv1.DeploymentProgressing, LastUpdateTime: metav1.Time{Time: noon.Add(-ago)}}}
	}
}

func touched(l *live) { l.pods.Generation = 3 }

func TestHowLongAStatusCanWait(t *testing.T) {
	conflict := &myweb.ConditionError{Reason: webv1.ReasonResourceConflict, Message: "ConfigMap site exists"}
	for name, test := range map[string]struct {
		reported, now seen
		want          time.Duration
	}{
		"nothing was reported":             {seen{}, pods(1, moving(0)), 0},
		"the first pod of a rollout":       {pods(0), pods(1, moving(0)), stalled},
		"one pod more":                     {pods(1), pods(2, moving(0)), stalled},
		"one pod less, others serve":       {pods(2), pods(1, moving(0)), stalled},
		"one pod more, 3 s ago":            {pods(1), pods(2, moving(3*time.Second)), 2 * time.Second},
		"it stands still for 5 s":          {pods(1), pods(2, moving(stalled)), 0},
		"it stands still for an hour":      {pods(1), pods(2, moving(time.Hour)), 0},
		"the last ready pod is lost":       {pods(1), pods(0, moving(0)), 0},
		"all pods are ready":               {pods(2), pods(3, moving(0)), 0},
		"a rollout begins":                 {pods(3), pods(2, moving(0)), 0},
		"a new generation":                 {pods(1), pods(2, moving(0)).ofANewGeneration(), 0},
		"a conflict":                       {pods(1), pods(2, moving(0)).with(conflict), 0},
		"a conflict that was reported":     {pods(1).with(conflict), pods(2, moving(0)).with(conflict), 0},
		"a Deployment without a condition": {pods(1), pods(2), 0},
		"another node port":                {pods(1), pods(2, moving(0), func(l *live) { l.port = 31000 }), 0},
		"an older template moved":          {pods(1), pods(2, moving(0), touched), stalled},
		"somebody touched it":              {pods(3), pods(3, touched), stalled},
		"touched, and a conflict":          {pods(3), pods(3, touched).with(conflict), 0},
		"touched by a new generation":      {pods(3), pods(3, touched).ofANewGeneration(), 0},
		"a new one, not yet seen": {
			pods(3), pods(0, touched, func(l *live) { l.pods.Status.ObservedGeneration = 0 }), 0},
	} {
		t.Run(name, func(t *testing.T) {
			web := &webv1.MyWeb{ObjectMeta: metav1.ObjectMeta{Name: "site", Generation: 3},
				Spec: webv1.MyWebSpec{Replicas: new(int32(3))}}
			if test.reported.change != nil {
				web.Status = served(test.reported.change).status(web, test.reported.blocked, noon.Add(-time.Minute))
			}
			old := web.Status
			if test.now.renewed {
				web.Generation++
			}
			now := served(test.now.change)
			status := now.status(web, test.now.blocked, noon.Time)
			if got := statusWriteDelay(old, status, now.pods, myweb.RolloutOf(now.pods), noon.Time); got != test.want {
				t.Errorf("it can wait %s, want %s", got, test.want)
			}
		})
	}
}
