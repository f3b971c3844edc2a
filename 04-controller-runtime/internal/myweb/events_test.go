package myweb

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
)

func TestEventsAreTransitionsOnly(t *testing.T) {
	wrong := func(reason, message string) webv1.MyWebStatus {
		return webv1.MyWebStatus{Conditions: []metav1.Condition{
			{Type: webv1.ConditionDegraded, Status: metav1.ConditionTrue, Reason: reason, Message: message}}}
	}
	well := func(completed bool) webv1.MyWebStatus {
		return webv1.MyWebStatus{Completed: completed, NodePort: 30100, Conditions: []metav1.Condition{
			{Type: webv1.ConditionDegraded, Status: metav1.ConditionFalse, Reason: webv1.ReasonAsExpected}}}
	}
	complete := Event{"Normal", "Complete", "The current generation is fully served, on node port 30100"}
	for name, test := range map[string]struct {
		old, now webv1.MyWebStatus
		want     []Event
	}{
		"made":                     {webv1.MyWebStatus{}, well(false), nil},
		"rolling, once more":       {well(false), well(false), nil},
		"completed":                {well(false), well(true), []Event{complete}},
		"completed at once":        {webv1.MyWebStatus{}, well(true), []Event{complete}},
		"completed, once more":     {well(true), well(true), nil},
		"rolling again":            {well(true), well(false), nil},
		"something is wrong":       {well(true), wrong("A", "a"), []Event{{"Warning", "A", "a"}}},
		"wrong from the beginning": {webv1.MyWebStatus{}, wrong("A", "a"), []Event{{"Warning", "A", "a"}}},
		"the same is still wrong":  {wrong("A", "a"), wrong("A", "a"), nil},
		"the same in other words":  {wrong("A", "a"), wrong("A", "b"), nil},
		"something else is wrong":  {wrong("A", "a"), wrong("B", "b"), []Event{{"Warning", "B", "b"}}},
		"it is over":               {wrong("A", "a"), well(false), []Event{{"Normal", "Recovered", "It is over: a"}}},
		"it is over, and completed": {
			wrong("A", "a"), well(true), []Event{{"Normal", "Recovered", "It is over: a"}, complete}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, EventsFor(test.old, test.now)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestShorten(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"short":                 {"abc", "abc"},
		"exactly as long":       {"abcdefgh", "abcdefgh"},
		"one byte too long":     {"abcdefghi", "abcde…"},
		"a character of 4 byte": {"abc🌍🌍", "abc…"},
	} {
		if got := Shorten(test.text, 8); got != test.want || len(got) > 8 {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
	long := webv1.MyWebStatus{Conditions: []metav1.Condition{
		{Type: webv1.ConditionDegraded, Status: metav1.ConditionTrue, Reason: "A", Message: strings.Repeat("x", 5000)}}}
	for _, e := range append(EventsFor(webv1.MyWebStatus{}, long), EventsFor(long, webv1.MyWebStatus{})...) {
		if len(e.Note) != 1024 {
			t.Errorf("the note of %s has %d bytes", e.Reason, len(e.Note))
		}
	}
}
