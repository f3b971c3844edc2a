package owned

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var noon = metav1.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// finished returns a Deployment with this number of pods, all ready, and changes it.
func finished(n int32, change ...func(*appsv1.Deployment)) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{UID: "d", Generation: 2}, Status: appsv1.DeploymentStatus{
		ObservedGeneration: 2, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n}}
	for _, f := range change {
		f(d)
	}
	return d
}

func unready(d *appsv1.Deployment) { d.Status.ReadyReplicas, d.Status.AvailableReplicas = 0, 0 }

func unseen3(d *appsv1.Deployment) { d.Generation = 3 }

func progress(reason string, updated time.Time) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) {
		d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable},
			{Type: appsv1.DeploymentProgressing, Reason: reason, Message: "too long",
				LastUpdateTime: metav1.Time{Time: updated}}}
	}
}

func old(d *appsv1.Deployment) { d.Status.UpdatedReplicas = 0 }

func late(d *appsv1.Deployment) { progress("ProgressDeadlineExceeded", noon.Time)(d) }

func refused(d *appsv1.Deployment) {
	d.Status.Conditions = append(d.Status.Conditions, appsv1.DeploymentCondition{
		Type: appsv1.DeploymentReplicaFailure, Status: "True", Reason: "FailedCreate", Message: "exceeded quota"})
}

func paused(d *appsv1.Deployment) { d.Spec.Paused = true }

func TestConditionsReportWhatIsObserved(t *testing.T) {
	conflict := &ConditionError{Reason: ReasonResourceConflict, Message: "Service site exists"}
	waiting := &ConditionError{Reason: ReasonWaitingForDeletion, Message: "Service site is being deleted", Transient: true}
	for name, test := range map[string]struct {
		pods                             *appsv1.Deployment
		replicas                         int32
		problem                          *ConditionError
		available, progressing, degraded string
	}{
		"all pods are ready": {finished(3), 3, nil, "True PodsReady", "False Complete", "False AsExpected"},
		"nothing made yet":   {&appsv1.Deployment{}, 3, nil, "False NoReadyPod", "True RollingOut", "False AsExpected"},
		"no Deployment, and none desired": {
			&appsv1.Deployment{}, 0, nil, "False ScaledToZero", "True RollingOut", "False AsExpected"},
		"no pod is ready":         {finished(3, unready), 3, nil, "False NoReadyPod", "True RollingOut", "False AsExpected"},
		"more pods are asked for": {finished(3), 5, nil, "True PodsReady", "True RollingOut", "False AsExpected"},
		"an old pod is still there": {finished(1, func(d *appsv1.Deployment) { d.Status.Replicas = 2 }), 1, nil,
			"True PodsReady", "True RollingOut", "False AsExpected"},
		"only old pods": {finished(1, func(d *appsv1.Deployment) { d.Status.UpdatedReplicas = 0 }), 1, nil,
			"True PodsReady", "True RollingOut", "False AsExpected"},
		"ready, not for long enough": {finished(1, func(d *appsv1.Deployment) { d.Status.AvailableReplicas = 0 }), 1,
			nil, "True PodsReady", "True RollingOut", "False AsExpected"},
		"scaled to zero": {finished(0), 0, nil, "False ScaledToZero", "False Complete", "False AsExpected"},
		"not observed by its controller": {
			finished(3, unseen3), 3, nil, "True PodsReady", "True RollingOut", "False AsExpected"},
		"it is being deleted": {
			finished(3, deleting), 3, waiting, "True PodsReady", "True WaitingForDeletion", "False AsExpected"},
		"deleted, and no problem known": {
			finished(3, deleting), 3, nil, "True PodsReady", "True RollingOut", "False AsExpected"},
		"a deadline passed": {finished(3, unready, late), 3, nil, "False NoReadyPod",
			"False ProgressDeadlineExceeded", "True ProgressDeadlineExceeded"},
		"a deadline, old pods are ready": {finished(3, late, old), 3, nil,
			"True PodsReady", "False ProgressDeadlineExceeded", "True ProgressDeadlineExceeded"},
		"pods are refused, old pods are ready": {
			finished(3, refused, old), 3, nil, "True PodsReady", "False ReplicaFailure", "True ReplicaFailure"},
		"pods are refused, and a deadline passed": {finished(3, unready, late, refused), 3, nil, "False NoReadyPod",
			"False ReplicaFailure", "True ReplicaFailure"},
		"pods are refused, and a user touched it": {finished(3, refused, old, unseen3), 3, nil, "True PodsReady",
			"False ReplicaFailure", "True ReplicaFailure"},
		"pods were refused, all are ready": {
			finished(3, refused), 3, nil, "True PodsReady", "False Complete", "False AsExpected"},
		"a ReplicaSet is refused, not yet observed": {finished(3, progress("ReplicaSetCreateError", noon.Time), unseen3), 3,
			nil, "True PodsReady", "False ReplicaFailure", "True ReplicaFailure"},
		"paused, and a rollout waits": {finished(3, paused, old, late, refused), 3, nil, "True PodsReady",
			"False DeploymentPaused", "True DeploymentPaused"},
		"paused in the middle of a rollout": {
			finished(3, paused, func(d *appsv1.Deployment) { d.Status.Replicas = 4 }), 3, nil, "True PodsReady",
			"False DeploymentPaused", "True DeploymentPaused"},
		"paused, and all are ready": {finished(3, paused), 3, nil, "True PodsReady", "False Complete", "False AsExpected"},
		"paused, and it scales":     {finished(3, paused), 5, nil, "True PodsReady", "True RollingOut", "False AsExpected"},
		"a deadline of an older one": {
			finished(3, late, unseen3), 3, nil, "True PodsReady", "True RollingOut", "False AsExpected"},
		"a deadline, and a conflict": {
			finished(3, late), 3, conflict, "True PodsReady", "False ResourceConflict", "True ResourceConflict"},
		"a conflict": {finished(3), 3, conflict, "True PodsReady", "False ResourceConflict", "True ResourceConflict"},
		"a problem that ends by itself": {
			finished(3), 3, waiting, "True PodsReady", "True WaitingForDeletion", "False AsExpected"},
	} {
		t.Run(name, func(t *testing.T) {
			var got []metav1.Condition
			SetConditions(&got, 3, test.pods, test.replicas, test.problem, noon.Time)
			for kind, want := range map[string]string{
				Available: test.available, Progressing: test.progressing, Degraded: test.degraded} {
				c := find(got, kind)
				if is := string(c.Status) + " " + c.Reason; is != want || c.ObservedGeneration != 3 || c.Message == "" ||
					!c.LastTransitionTime.Equal(&noon) {
					t.Errorf("%s is %+v, want %s", kind, c, want)
				}
			}
		})
	}
}

func TestAvailableWaitsForTheDeploymentsController(t *testing.T) {
	var got []metav1.Condition
	SetConditions(&got, 3, finished(3), 3, nil, noon.Time)
	SetConditions(&got, 4, finished(3, unready, unseen3), 3, nil, noon.Time)
	if c := find(got, Available); c.Status != metav1.ConditionTrue || c.ObservedGeneration != 3 {
		t.Errorf("its controller has not observed generation 4, Available is %+v", c)
	}
	SetConditions(&got, 4, finished(3, unready), 3, nil, noon.Time)
	if c := find(got, Available); c.Status != metav1.ConditionFalse || c.ObservedGeneration != 4 {
		t.Errorf("it has observed it, Available is %+v", c)
	}
	SetConditions(&got, 4, finished(3), 3, nil, noon.Time)
	made := finished(0, func(d *appsv1.Deployment) { d.Generation, d.Status.ObservedGeneration = 1, 0 })
	SetConditions(&got, 4, made, 3, nil, noon.Time)
	if c := find(got, Available); c.Status != metav1.ConditionFalse {
		t.Errorf("the Deployment was deleted and made again, no pod is there, Available is %+v", c)
	}
}

func TestTheTimeOfAConditionMovesOnlyWithItsStatus(t *testing.T) {
	later := noon.Add(time.Hour)
	got := []metav1.Condition{{Type: "OfOthers", Status: metav1.ConditionTrue}}
	SetConditions(&got, 3, finished(3), 3, nil, noon.Time)
	SetConditions(&got, 4, finished(3), 5, nil, later)
	for kind, want := range map[string]time.Time{Available: noon.Time, Progressing: later, Degraded: noon.Time} {
		if c := find(got, kind); !c.LastTransitionTime.Time.Equal(want) || c.ObservedGeneration != 4 {
			t.Errorf("%s moved at %s, of generation %d; want %s, 4", kind, c.LastTransitionTime, c.ObservedGeneration, want)
		}
	}
	if len(got) != 4 || !meta.IsStatusConditionTrue(got, "OfOthers") {
		t.Errorf("conditions of others are not kept: %v", got)
	}
}

func TestEventsReportTransitionsOnly(t *testing.T) {
	wrong := func(reason, message string) []metav1.Condition {
		return []metav1.Condition{{Type: Degraded, Status: metav1.ConditionTrue, Reason: reason, Message: message},
			{Type: Progressing, Status: metav1.ConditionFalse, Reason: reason}}
	}
	well := func(progressing string) []metav1.Condition {
		return []metav1.Condition{{Type: Degraded, Status: metav1.ConditionFalse, Reason: ReasonAsExpected},
			{Type: Progressing, Reason: progressing}}
	}
	rolling, complete := well(ReasonRollingOut), well(ReasonComplete)
	done := Event{"Normal", "Complete", "All pods are of the current generation, and ready"}
	for name, test := range map[string]struct {
		old, now []metav1.Condition
		want     []Event
	}{
		"made":                      {nil, rolling, nil},
		"rolling, once more":        {rolling, rolling, nil},
		"complete":                  {rolling, complete, []Event{done}},
		"complete at once":          {nil, complete, []Event{done}},
		"complete, once more":       {complete, complete, nil},
		"rolling again":             {complete, rolling, nil},
		"something is wrong":        {complete, wrong("A", "a"), []Event{{"Warning", "A", "a"}}},
		"wrong from the beginning":  {nil, wrong("A", "a"), []Event{{"Warning", "A", "a"}}},
		"the same is still wrong":   {wrong("A", "a"), wrong("A", "a"), nil},
		"the same in other words":   {wrong("A", "a"), wrong("A", "b"), nil},
		"something else is wrong":   {wrong("A", "a"), wrong("B", "b"), []Event{{"Warning", "B", "b"}}},
		"it is over":                {wrong("A", "a"), rolling, []Event{{"Normal", "Recovered", "It is over: a"}}},
		"it is over, and completed": {wrong("A", "a"), complete, []Event{{"Normal", "Recovered", "It is over: a"}, done}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, Events(test.old, test.now)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestLongMessagesAreShortened(t *testing.T) {
	long := strings.Repeat("ä", 20000) // 40,000 bytes
	var got []metav1.Condition
	SetConditions(&got, 3, finished(3), 3, Errorf(ReasonChildRejected, "%s", long), noon.Time)
	if m := find(got, Degraded).Message; len(m) > maxMessage || len(m) < maxMessage-4 || !utf8.ValidString(m) ||
		!strings.HasSuffix(m, "ä…") {
		t.Errorf("the condition's message has %d bytes and ends with %q", len(m), m[len(m)-5:])
	}
	over := []metav1.Condition{{Type: Degraded, Status: metav1.ConditionFalse}}
	for name, events := range map[string][]Event{"the problem": Events(nil, got), "its end": Events(got, over)} {
		if len(events) != 1 || len(events[0].Note) > 1024 || len(events[0].Note) < 1020 || !utf8.ValidString(events[0].Note) {
			t.Errorf("%s: %d events, the note has %d bytes", name, len(events), len(events[0].Note))
		}
	}
	if got := shorten("short", maxNote); got != "short" {
		t.Errorf("got %q", got)
	}
}

func TestAnOutdatedStatusOfADeploymentIsNotReported(t *testing.T) {
	degraded := []metav1.Condition{{Type: Degraded, Status: metav1.ConditionTrue}}
	for name, test := range map[string]struct {
		old, now []metav1.Condition
		pods     *appsv1.Deployment
		want     bool
	}{
		"its controller has seen it":     {nil, nil, finished(3), false},
		"its controller has not seen it": {nil, nil, finished(3, unseen3), true},
		"a new one":                      {nil, nil, finished(0, func(d *appsv1.Deployment) { d.Status.ObservedGeneration = 0 }), false},
		"one that is being deleted":      {nil, nil, finished(3, unseen3, deleting), false},
		"a problem is to be reported":    {nil, degraded, finished(3, unseen3), false},
		"a problem that ended":           {degraded, nil, finished(3, unseen3), false},
	} {
		if got := IsUnobserved(test.old, test.now, test.pods); got != test.want {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
	}
}

func TestJoin(t *testing.T) {
	conflict, rejected := Errorf(ReasonResourceConflict, "c"), &ConditionError{Reason: ReasonChildRejected,
		Message: "r", Retry: true}
	mutated, waiting := Errorf(ReasonChildMutated, "m"), Transientf(ReasonWaitingForDeletion, "w")
	for name, test := range map[string]struct {
		all  []error
		want *ConditionError
	}{
		"none":                      {[]error{nil, nil}, nil},
		"one":                       {[]error{nil, rejected}, rejected},
		"two of one reason":         {[]error{conflict, conflict}, Errorf(ReasonResourceConflict, "c; c")},
		"a conflict comes first":    {[]error{mutated, conflict}, Errorf(ReasonResourceConflict, "c; m")},
		"what lasts hides the rest": {[]error{waiting, mutated}, mutated},
		"one of two must be retried": {
			[]error{mutated, rejected}, &ConditionError{Reason: ReasonChildMutated, Message: "m; r", Retry: true}},
	} {
		err := Join(test.all...)
		if diff := cmp.Diff(test.want, AsError(err)); diff != "" || err != nil && test.want == nil {
			t.Errorf("%s: %v %s", name, err, diff)
		}
	}
	failed := errors.New("connection refused")
	if err := Join(mutated, failed, nil); !errors.Is(err, failed) || AsError(err) != nil {
		t.Errorf("a failure of the API server is not reported, and tried again: got %v", err)
	}
}
