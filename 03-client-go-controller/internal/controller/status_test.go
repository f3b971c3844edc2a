package controller

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	webv1 "example.com/operator-workshop/03-client-go-controller/pkg/apis/myweb/v1"
)

var noon = metav1.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// live are the children that statusFor looks at.
type live struct {
	pods    *appsv1.Deployment
	service *corev1.Service
}

// served returns children that serve a MyWeb fully, then changed.
func served(web *webv1.MyWeb, change ...func(*live)) children {
	owner := []metav1.OwnerReference{{UID: web.UID, Controller: new(true)}}
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
	all := desiredChildren(web)
	if l.pods != nil {
		all[1].live = l.pods
	}
	if l.service != nil {
		all[2].live = l.service
	}
	return all
}

func three(w *webv1.MyWeb) { w.Spec.Replicas = new(int32(3)) }

func progress(status corev1.ConditionStatus, reason string, updated time.Time) func(*live) {
	return func(l *live) {
		l.pods.Status.Conditions = append(l.pods.Status.Conditions, appsv1.DeploymentCondition{Type: appsv1.DeploymentAvailable},
			appsv1.DeploymentCondition{Type: appsv1.DeploymentProgressing, Status: status, Reason: reason, Message: "too long",
				LastUpdateTime: metav1.Time{Time: updated}})
	}
}

func TestStatusTellsTheTruth(t *testing.T) {
	late := progress(corev1.ConditionFalse, "ProgressDeadlineExceeded", noon.Time)
	conflict := &obstacle{reason: webv1.ReasonResourceConflict, message: "ConfigMap site exists"}
	waiting := &obstacle{reason: webv1.ReasonWaitingForDeletion, message: "ConfigMap site is being deleted", passing: true}
	foreign := func(l *live) { l.pods.OwnerReferences = nil }
	for name, test := range map[string]struct {
		web                              func(*webv1.MyWeb)
		change                           func(*live)
		what                             *obstacle
		completed                        bool
		ready                            int32
		available, progressing, degraded string
	}{
		"fully served": {completed: true, ready: 1, available: "True Serving", progressing: "False Complete", degraded: "False AsExpected"},
		"nothing made yet": {change: func(l *live) { l.pods, l.service = nil, nil },
			available: "False NoReadyPod", progressing: "True RollingOut", degraded: "False AsExpected"},
		"nothing made yet, and no pod wanted": {web: func(w *webv1.MyWeb) { w.Spec.Replicas = new(int32(0)) },
			change:    func(l *live) { l.pods, l.service = nil, nil },
			available: "False ScaledToZero", progressing: "True RollingOut", degraded: "False AsExpected"},
		"no pod ready": {change: func(l *live) { l.pods.Status.ReadyReplicas, l.pods.Status.AvailableReplicas = 0, 0 },
			available: "False NoReadyPod", progressing: "True RollingOut", degraded: "False AsExpected"},
		"the Deployment controller did not look yet": {change: func(l *live) { l.pods.Generation = 3 },
			ready: 1, available: "True Serving", progressing: "True RollingOut", degraded: "False AsExpected"},
		"an old pod is still there": {change: func(l *live) { l.pods.Status.Replicas = 2 },
			ready: 1, available: "True Serving", progressing: "True RollingOut", degraded: "False AsExpected"},
		"only old pods": {change: func(l *live) { l.pods.Status.UpdatedReplicas = 0 },
			ready: 1, available: "True Serving", progressing: "True RollingOut", degraded: "False AsExpected"},
		"ready, but not for long enough": {change: func(l *live) { l.pods.Status.AvailableReplicas = 0 },
			ready: 1, available: "True Serving", progressing: "True RollingOut", degraded: "False AsExpected"},
		"two of three": {web: three, change: func(l *live) { l.pods.Status.ReadyReplicas, l.pods.Status.AvailableReplicas = 2, 2 },
			ready: 2, available: "True Serving", progressing: "True RollingOut", degraded: "False AsExpected"},
		"three of three": {web: three, completed: true, ready: 3,
			available: "True Serving", progressing: "False Complete", degraded: "False AsExpected"},
		"no port yet": {change: func(l *live) { l.service.Spec.Ports[0].NodePort = 0 },
			ready: 1, available: "True Serving", progressing: "True RollingOut", degraded: "False AsExpected"},
		"only a port of others": {change: func(l *live) { l.service.Spec.Ports[0].Name = "metrics" },
			ready: 1, available: "True Serving", progressing: "True RollingOut", degraded: "False AsExpected"},
		"a port of others before": {change: func(l *live) {
			l.service.Spec.Ports = append([]corev1.ServicePort{{Name: "metrics", NodePort: 32000}}, l.service.Spec.Ports...)
		}, completed: true, ready: 1, available: "True Serving", progressing: "False Complete", degraded: "False AsExpected"},
		"scaled to zero": {web: func(w *webv1.MyWeb) { w.Spec.Replicas = new(int32(0)) },
			completed: true, available: "False ScaledToZero", progressing: "False Complete", degraded: "False AsExpected"},
		"scaled to zero, a pod still runs": {web: func(w *webv1.MyWeb) { w.Spec.Replicas = new(int32(0)) },
			change: func(l *live) { l.pods.Status.Replicas, l.pods.Status.ReadyReplicas = 1, 1 },
			ready:  1, available: "True Serving", progressing: "True RollingOut", degraded: "False AsExpected"},
		"the Deployment is being deleted": {change: func(l *live) { l.pods.DeletionTimestamp = &noon }, what: waiting,
			ready: 1, available: "True Serving", progressing: "True WaitingForDeletion", degraded: "False AsExpected"},
		"the Deployment is being deleted, nothing is in the way": {change: func(l *live) { l.pods.DeletionTimestamp = &noon },
			ready: 1, available: "True Serving", progressing: "True RollingOut", degraded: "False AsExpected"},
		"a deadline passed, old pods serve": {change: func(l *live) { l.pods.Status.UpdatedReplicas = 0; late(l) },
			ready: 1, available: "True Serving", progressing: "False ProgressDeadlineExceeded", degraded: "True ProgressDeadlineExceeded"},
		"a deadline passed, no pod serves": {change: func(l *live) { l.pods.Status.ReadyReplicas, l.pods.Status.AvailableReplicas = 0, 0; late(l) },
			available: "False NoReadyPod", progressing: "False ProgressDeadlineExceeded", degraded: "True ProgressDeadlineExceeded"},
		"a deadline passed, for an older template": {change: func(l *live) { l.pods.Generation = 3; late(l) },
			ready: 1, available: "True Serving", progressing: "True RollingOut", degraded: "False AsExpected"},
		"a deadline passed, and an obstacle": {change: late, what: conflict,
			ready: 1, available: "True Serving", progressing: "False ResourceConflict", degraded: "True ResourceConflict"},
		"a deadline passed, and something passes": {change: late, what: waiting,
			ready: 1, available: "True Serving", progressing: "False ProgressDeadlineExceeded", degraded: "True ProgressDeadlineExceeded"},
		"an obstacle": {what: conflict,
			ready: 1, available: "True Serving", progressing: "False ResourceConflict", degraded: "True ResourceConflict"},
		"an obstacle that passes": {what: waiting,
			ready: 1, available: "True Serving", progressing: "True WaitingForDeletion", degraded: "False AsExpected"},
		"a Deployment of somebody else": {change: foreign, what: conflict,
			available: "False NoReadyPod", progressing: "False ResourceConflict", degraded: "True ResourceConflict"},
	} {
		t.Run(name, func(t *testing.T) {
			web := myWeb()
			if test.web != nil {
				test.web(web)
			}
			if test.change == nil {
				test.change = func(*live) {}
			}
			got := statusFor(web, served(web, test.change), test.what, noon.Time)
			if got.Completed != test.completed || got.ReadyReplicas != test.ready || got.ObservedGeneration != 3 {
				t.Errorf("completed %v, ready %d, of generation %d; want %v, %d, 3", got.Completed, got.ReadyReplicas, got.ObservedGeneration, test.completed, test.ready)
			}
			for kind, want := range map[string]string{webv1.ConditionAvailable: test.available,
				webv1.ConditionProgressing: test.progressing, webv1.ConditionDegraded: test.degraded} {
				c := meta.FindStatusCondition(got.Conditions, kind)
				if is := string(c.Status) + " " + c.Reason; is != want || c.ObservedGeneration != 3 || c.Message == "" || !c.LastTransitionTime.Equal(&noon) {
					t.Errorf("%s is %+v, want %s", kind, c, want)
				}
			}
		})
	}
}

func TestStatusNamesPortSelectorAndWhatIsInTheWay(t *testing.T) {
	what := &obstacle{reason: webv1.ReasonResourceConflict, message: "ConfigMap site exists"}
	got := statusFor(myWeb(), served(myWeb()), what, noon.Time)
	if got.NodePort != 30100 || got.Selector != "app.kubernetes.io/instance=site,app.kubernetes.io/name=myweb" {
		t.Errorf("node port %d, selector %q", got.NodePort, got.Selector)
	}
	for _, kind := range []string{webv1.ConditionDegraded, webv1.ConditionProgressing} {
		if c := meta.FindStatusCondition(got.Conditions, kind); c.Message != what.message {
			t.Errorf("%s says %q", kind, c.Message)
		}
	}
}

func TestTheTimeOfAConditionMovesOnlyWithItsStatus(t *testing.T) {
	later := noon.Add(time.Hour)
	web := myWeb()
	web.Status = statusFor(web, served(web), nil, noon.Time)
	web.Generation++ // every condition speaks of another generation now
	rolling := func(l *live) { l.pods.Status.UpdatedReplicas = 0 }
	got := statusFor(web, served(web, rolling), nil, later)
	for kind, want := range map[string]time.Time{webv1.ConditionAvailable: noon.Time,
		webv1.ConditionProgressing: later, webv1.ConditionDegraded: noon.Time} {
		if c := meta.FindStatusCondition(got.Conditions, kind); !c.LastTransitionTime.Time.Equal(want) || c.ObservedGeneration != 4 {
			t.Errorf("%s moved at %s, of generation %d; want %s, 4", kind, c.LastTransitionTime, c.ObservedGeneration, want)
		}
	}
}

func TestTheSameStateGivesTheSameStatus(t *testing.T) {
	web := myWeb()
	web.Status = statusFor(web, served(web), nil, noon.Time)
	web.Status.Conditions = append(web.Status.Conditions, metav1.Condition{Type: "OfOthers", Status: metav1.ConditionTrue})
	if diff := cmp.Diff(web.Status, statusFor(web, served(web), nil, noon.Add(time.Hour))); diff != "" {
		t.Error(diff)
	}
}

func TestHowLongAStatusCanWait(t *testing.T) {
	ready := func(n int32) func(*live) {
		return func(l *live) { l.pods.Status.ReadyReplicas, l.pods.Status.AvailableReplicas = n, n }
	}
	moving := func(ago time.Duration) func(*live) {
		return progress(corev1.ConditionTrue, "ReplicaSetUpdated", noon.Add(-ago))
	}
	touched := func(l *live) { l.pods.Generation = 3 }
	type state struct {
		web    func(*webv1.MyWeb)
		change []func(*live)
		what   *obstacle
	}
	conflict := &obstacle{reason: webv1.ReasonResourceConflict, message: "ConfigMap site exists"}
	for name, test := range map[string]struct {
		told *state // nil: nothing was told yet
		now  state
		want time.Duration
	}{
		"nothing was told":               {nil, state{change: []func(*live){ready(1), moving(0)}}, 0},
		"the first pod of a rollout":     {&state{change: []func(*live){ready(0)}}, state{change: []func(*live){ready(1), moving(0)}}, stalled},
		"one pod more":                   {&state{change: []func(*live){ready(1)}}, state{change: []func(*live){ready(2), moving(0)}}, stalled},
		"one pod less, others serve":     {&state{change: []func(*live){ready(2)}}, state{change: []func(*live){ready(1), moving(0)}}, stalled},
		"one pod more, 3 s ago":          {&state{change: []func(*live){ready(1)}}, state{change: []func(*live){ready(2), moving(3 * time.Second)}}, 2 * time.Second},
		"it stands still for 5 s":        {&state{change: []func(*live){ready(1)}}, state{change: []func(*live){ready(2), moving(stalled)}}, 0},
		"it stands still for an hour":    {&state{change: []func(*live){ready(1)}}, state{change: []func(*live){ready(2), moving(time.Hour)}}, 0},
		"the last ready pod is lost":     {&state{change: []func(*live){ready(1)}}, state{change: []func(*live){ready(0), moving(0)}}, 0},
		"all pods are ready":             {&state{change: []func(*live){ready(2)}}, state{change: []func(*live){ready(3), moving(0)}}, 0},
		"a rollout begins":               {&state{change: []func(*live){ready(3)}}, state{change: []func(*live){ready(2), moving(0)}}, 0},
		"a new generation":               {&state{change: []func(*live){ready(1)}}, state{web: func(w *webv1.MyWeb) { w.Generation++ }, change: []func(*live){ready(2), moving(0)}}, 0},
		"an obstacle":                    {&state{change: []func(*live){ready(1)}}, state{change: []func(*live){ready(2), moving(0)}, what: conflict}, 0},
		"an obstacle that was told":      {&state{change: []func(*live){ready(1)}, what: conflict}, state{change: []func(*live){ready(2), moving(0)}, what: conflict}, 0},
		"a Deployment that says nothing": {&state{change: []func(*live){ready(1)}}, state{change: []func(*live){ready(2)}}, 0},
		"another node port": {&state{change: []func(*live){ready(1)}},
			state{change: []func(*live){ready(2), moving(0), func(l *live) { l.service.Spec.Ports[0].NodePort = 31000 }}}, 0},
		"an older template moved":     {&state{change: []func(*live){ready(1)}}, state{change: []func(*live){ready(2), moving(0), touched}}, stalled},
		"somebody touched it":         {&state{change: []func(*live){ready(3)}}, state{change: []func(*live){ready(3), touched}}, stalled},
		"touched, and an obstacle":    {&state{change: []func(*live){ready(3)}}, state{change: []func(*live){ready(3), touched}, what: conflict}, 0},
		"touched by a new generation": {&state{change: []func(*live){ready(3)}}, state{web: func(w *webv1.MyWeb) { w.Generation++ }, change: []func(*live){ready(3), touched}}, 0},
		"a new one, not yet seen":     {&state{change: []func(*live){ready(3)}}, state{change: []func(*live){ready(0), touched, func(l *live) { l.pods.Status.ObservedGeneration = 0 }}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			web := myWeb(three)
			if test.told != nil {
				web.Status = statusFor(web, served(web, test.told.change...), test.told.what, noon.Add(-time.Minute))
			}
			old := web.Status
			if test.now.web != nil {
				test.now.web(web)
			}
			all := served(web, test.now.change...)
			if got := untold(old, statusFor(web, all, test.now.what, noon.Time), all.pods(web), noon.Time); got != test.want {
				t.Errorf("it can wait %s, want %s", got, test.want)
			}
		})
	}
}
