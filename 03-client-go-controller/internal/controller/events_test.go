package controller

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	webv1 "example.com/operator-workshop/03-client-go-controller/pkg/apis/myweb/v1"
)

func TestEventsTellTransitionsOnly(t *testing.T) {
	wrong := func(reason, message string) webv1.MyWebStatus {
		return webv1.MyWebStatus{Conditions: []metav1.Condition{
			{Type: webv1.ConditionDegraded, Status: metav1.ConditionTrue, Reason: reason, Message: message}}}
	}
	well := func(completed bool) webv1.MyWebStatus {
		return webv1.MyWebStatus{Completed: completed, NodePort: 30100, Conditions: []metav1.Condition{
			{Type: webv1.ConditionDegraded, Status: metav1.ConditionFalse, Reason: webv1.ReasonAsExpected}}}
	}
	complete := event{"Normal", "Complete", "The current generation is fully served, on node port 30100"}
	for name, test := range map[string]struct {
		old, now webv1.MyWebStatus
		want     []event
	}{
		"made":                      {webv1.MyWebStatus{}, well(false), nil},
		"rolling, once more":        {well(false), well(false), nil},
		"completed":                 {well(false), well(true), []event{complete}},
		"completed at once":         {webv1.MyWebStatus{}, well(true), []event{complete}},
		"completed, once more":      {well(true), well(true), nil},
		"rolling again":             {well(true), well(false), nil},
		"something is wrong":        {well(true), wrong("A", "a"), []event{{"Warning", "A", "a"}}},
		"wrong from the beginning":  {webv1.MyWebStatus{}, wrong("A", "a"), []event{{"Warning", "A", "a"}}},
		"the same is still wrong":   {wrong("A", "a"), wrong("A", "a"), nil},
		"the same in other words":   {wrong("A", "a"), wrong("A", "b"), nil},
		"something else is wrong":   {wrong("A", "a"), wrong("B", "b"), []event{{"Warning", "B", "b"}}},
		"it is over":                {wrong("A", "a"), well(false), []event{{"Normal", "Recovered", "It is over: a"}}},
		"it is over, and completed": {wrong("A", "a"), well(true), []event{{"Normal", "Recovered", "It is over: a"}, complete}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, eventsFor(test.old, test.now), cmp.AllowUnexported(event{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}
