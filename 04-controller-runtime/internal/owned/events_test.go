package owned

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestEventsAreTransitionsOnly(t *testing.T) {
	wrong := func(reason, message string) []metav1.Condition {
		return []metav1.Condition{{Type: Degraded, Status: metav1.ConditionTrue, Reason: reason, Message: message},
			{Type: Progressing, Status: metav1.ConditionFalse, Reason: reason}}
	}
	well := func(completed bool) []metav1.Condition {
		progress := metav1.Condition{Type: Progressing, Reason: ReasonRollingOut, Message: "wait"}
		if completed {
			progress.Reason, progress.Message = ReasonComplete, "all pods"
		}
		return []metav1.Condition{{Type: Degraded, Status: metav1.ConditionFalse}, progress}
	}
	complete := Event{Type: "Normal", Reason: "Complete", Note: "all pods"}
	for name, test := range map[string]struct {
		old, now []metav1.Condition
		want     []Event
	}{
		"made":                     {nil, well(false), nil},
		"rolling, once more":       {well(false), well(false), nil},
		"completed":                {well(false), well(true), []Event{complete}},
		"completed at once":        {nil, well(true), []Event{complete}},
		"completed, once more":     {well(true), well(true), nil},
		"rolling again":            {well(true), well(false), nil},
		"something is wrong":       {well(true), wrong("A", "a"), []Event{{"Warning", "A", "a"}}},
		"wrong from the beginning": {nil, wrong("A", "a"), []Event{{"Warning", "A", "a"}}},
		"the same is still wrong":  {wrong("A", "a"), wrong("A", "a"), nil},
		"the same in other words":  {wrong("A", "a"), wrong("A", "b"), nil},
		"something else is wrong":  {wrong("A", "a"), wrong("B", "b"), []Event{{"Warning", "B", "b"}}},
		"it is over":               {wrong("A", "a"), well(false), []Event{{"Normal", "Recovered", "It is over: a"}}},
		"it is over, and completed": {
			wrong("A", "a"), well(true), []Event{{"Normal", "Recovered", "It is over: a"}, complete}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, Events(test.old, test.now)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestMessagesFitIntoEvents(t *testing.T) {
	for name, text := range map[string]string{"short": "abc", "long": strings.Repeat("x", 5000),
		"long, a character has 4 bytes": strings.Repeat("🌍", 1000)} {
		t.Run(name, func(t *testing.T) {
			var is, over []metav1.Condition
			blocked := Errorf("A", "%s", text)
			SetConditions(&is, 1, &appsv1.Deployment{}, 1, blocked, time.Unix(0, 0))
			SetConditions(&over, 1, &appsv1.Deployment{}, 1, nil, time.Unix(0, 0))
			for _, e := range append(Events(nil, is), Events(is, over)...) {
				whole := strings.HasSuffix(e.Note, text)
				if len(e.Note) > 1024 || !utf8.ValidString(e.Note) || whole != (len(text) < 1000) ||
					!whole && (len(e.Note) < 990 || !strings.HasSuffix(e.Note, "…")) {
					t.Errorf("the note of %s has %d bytes: %s", e.Reason, len(e.Note), e.Note)
				}
			}
		})
	}
}
