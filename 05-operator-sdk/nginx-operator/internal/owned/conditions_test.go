package owned

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var noon = metav1.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// rolledOut is a Deployment whose pods, so many, are all there and ready; then changed.
func rolledOut(n int32, change ...func(*appsv1.Deployment)) *appsv1.Deployment {
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
			{Type: appsv1.DeploymentProgressing, Reason: reason, Message: "too long", LastUpdateTime: metav1.Time{Time: updated}}}
	}
}

func late(d *appsv1.Deployment) { progress("ProgressDeadlineExceeded", noon.Time)(d) }

func TestConditionsTellTheTruth(t *testing.T) {
	conflict := &Obstacle{Reason: ReasonResourceConflict, Message: "Service site exists"}
	waiting := &Obstacle{Reason: ReasonWaitingForDeletion, Message: "Service site is being deleted", Passing: true}
	for name, test := range map[string]struct {
		pods                             *appsv1.Deployment
		replicas                         int32
		what                             *Obstacle
		available, progressing, degraded string
	}{
		"all pods are ready":             {rolledOut(3), 3, nil, "True PodsReady", "False Complete", "False AsExpected"},
		"nothing made yet":               {&appsv1.Deployment{}, 3, nil, "False NoReadyPod", "True RollingOut", "False AsExpected"},
		"nothing made, and none asked":   {&appsv1.Deployment{}, 0, nil, "False ScaledToZero", "True RollingOut", "False AsExpected"},
		"no pod is ready":                {rolledOut(3, unready), 3, nil, "False NoReadyPod", "True RollingOut", "False AsExpected"},
		"more pods are asked for":        {rolledOut(3), 5, nil, "True PodsReady", "True RollingOut", "False AsExpected"},
		"an old pod is still there":      {rolledOut(1, func(d *appsv1.Deployment) { d.Status.Replicas = 2 }), 1, nil, "True PodsReady", "True RollingOut", "False AsExpected"},
		"only old pods":                  {rolledOut(1, func(d *appsv1.Deployment) { d.Status.UpdatedReplicas = 0 }), 1, nil, "True PodsReady", "True RollingOut", "False AsExpected"},
		"ready, not for long enough":     {rolledOut(1, func(d *appsv1.Deployment) { d.Status.AvailableReplicas = 0 }), 1, nil, "True PodsReady", "True RollingOut", "False AsExpected"},
		"scaled to zero":                 {rolledOut(0), 0, nil, "False ScaledToZero", "False Complete", "False AsExpected"},
		"its controller did not look":    {rolledOut(3, unseen3), 3, nil, "True PodsReady", "True RollingOut", "False AsExpected"},
		"it is being deleted":            {rolledOut(3, deleting), 3, waiting, "True PodsReady", "True WaitingForDeletion", "False AsExpected"},
		"deleted, nothing in the way":    {rolledOut(3, deleting), 3, nil, "True PodsReady", "True RollingOut", "False AsExpected"},
		"a deadline passed":              {rolledOut(3, unready, late), 3, nil, "False NoReadyPod", "False ProgressDeadlineExceeded", "True ProgressDeadlineExceeded"},
		"a deadline, old pods are ready": {rolledOut(3, late, func(d *appsv1.Deployment) { d.Status.UpdatedReplicas = 0 }), 3, nil, "True PodsReady", "False ProgressDeadlineExceeded", "True ProgressDeadlineExceeded"},
		"a deadline of an older one":     {rolledOut(3, late, unseen3), 3, nil, "True PodsReady", "True RollingOut", "False AsExpected"},
		"a deadline, and an obstacle":    {rolledOut(3, late), 3, conflict, "True PodsReady", "False ResourceConflict", "True ResourceConflict"},
		"an obstacle":                    {rolledOut(3), 3, conflict, "True PodsReady", "False ResourceConflict", "True ResourceConflict"},
		"an obstacle that passes":        {rolledOut(3), 3, waiting, "True PodsReady", "True WaitingForDeletion", "False AsExpected"},
	} {
		t.Run(name, func(t *testing.T) {
			var got []metav1.Condition
			Set(&got, 3, test.pods, test.replicas, test.what, noon.Time)
			for kind, want := range map[string]string{ConditionAvailable: test.available, ConditionProgressing: test.progressing, ConditionDegraded: test.degraded} {
				c := find(got, kind)
				if is := string(c.Status) + " " + c.Reason; is != want || c.ObservedGeneration != 3 || c.Message == "" || !c.LastTransitionTime.Equal(&noon) {
					t.Errorf("%s is %+v, want %s", kind, c, want)
				}
			}
		})
	}
}

func TestAvailableWaitsForTheDeploymentsController(t *testing.T) {
	var got []metav1.Condition
	Set(&got, 3, rolledOut(3), 3, nil, noon.Time)
	Set(&got, 4, rolledOut(3, unready, unseen3), 3, nil, noon.Time)
	if c := find(got, ConditionAvailable); c.Status != metav1.ConditionTrue || c.ObservedGeneration != 3 {
		t.Errorf("its controller did not look at generation 4, Available is %+v", c)
	}
	Set(&got, 4, rolledOut(3, unready), 3, nil, noon.Time)
	if c := find(got, ConditionAvailable); c.Status != metav1.ConditionFalse || c.ObservedGeneration != 4 {
		t.Errorf("it looked, Available is %+v", c)
	}
	Set(&got, 4, rolledOut(3), 3, nil, noon.Time)
	made := rolledOut(0, func(d *appsv1.Deployment) { d.Generation, d.Status.ObservedGeneration = 1, 0 })
	Set(&got, 4, made, 3, nil, noon.Time)
	if c := find(got, ConditionAvailable); c.Status != metav1.ConditionFalse {
		t.Errorf("the Deployment was deleted and made again, no pod is there, Available is %+v", c)
	}
}

func TestTheTimeOfAConditionMovesOnlyWithItsStatus(t *testing.T) {
	later := noon.Add(time.Hour)
	got := []metav1.Condition{{Type: "OfOthers", Status: metav1.ConditionTrue}}
	Set(&got, 3, rolledOut(3), 3, nil, noon.Time)
	Set(&got, 4, rolledOut(3), 5, nil, later)
	for kind, want := range map[string]time.Time{ConditionAvailable: noon.Time, ConditionProgressing: later, ConditionDegraded: noon.Time} {
		if c := find(got, kind); !c.LastTransitionTime.Time.Equal(want) || c.ObservedGeneration != 4 {
			t.Errorf("%s moved at %s, of generation %d; want %s, 4", kind, c.LastTransitionTime, c.ObservedGeneration, want)
		}
	}
	if len(got) != 4 || !meta.IsStatusConditionTrue(got, "OfOthers") {
		t.Errorf("conditions of others are not kept: %v", got)
	}
}

func TestHowLongStatusCanWait(t *testing.T) {
	for name, test := range map[string]struct {
		pods              *appsv1.Deployment
		untouched, moving time.Duration
	}{
		"nothing there":            {&appsv1.Deployment{}, 0, 0},
		"it moved just now":        {rolledOut(1, progress("ReplicaSetUpdated", noon.Time)), 0, stalled},
		"it moved 3 s ago":         {rolledOut(1, progress("ReplicaSetUpdated", noon.Add(-3*time.Second))), 0, 2 * time.Second},
		"it stands still":          {rolledOut(1, progress("ReplicaSetUpdated", noon.Add(-time.Hour))), 0, 0},
		"it says nothing":          {rolledOut(1), 0, 0},
		"somebody touched it":      {rolledOut(1, progress("x", noon.Time), unseen3), stalled, 0},
		"touched, being deleted":   {rolledOut(1, unseen3, deleting), 0, 0},
		"new, and not yet seen":    {rolledOut(1, func(d *appsv1.Deployment) { d.Status.ObservedGeneration = 0 }), 0, 0},
		"looked at by its creator": {rolledOut(1, func(d *appsv1.Deployment) { d.Generation = 1 }), 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Untouched(test.pods); got != test.untouched {
				t.Errorf("untouched: %s, want %s", got, test.untouched)
			}
			if got := Moving(test.pods, noon.Time); got != test.moving {
				t.Errorf("moving: %s, want %s", got, test.moving)
			}
		})
	}
}

func TestEventsTellTransitionsOnly(t *testing.T) {
	wrong := func(reason, message string) []metav1.Condition {
		return []metav1.Condition{{Type: ConditionDegraded, Status: metav1.ConditionTrue, Reason: reason, Message: message},
			{Type: ConditionProgressing, Status: metav1.ConditionFalse, Reason: reason}}
	}
	well := func(progressing string) []metav1.Condition {
		return []metav1.Condition{{Type: ConditionDegraded, Status: metav1.ConditionFalse, Reason: ReasonAsExpected},
			{Type: ConditionProgressing, Reason: progressing}}
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
