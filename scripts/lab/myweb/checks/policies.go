package checks

import (
	"strings"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

// policyChecks are the checks of quotas and policies, and of refusals by the schema.
var policyChecks = []suite.Check{
	{ID: "fault/32-quota",
		Run: func(t *suite.T) {
			denied(t, t.Limit(corev1.ResourceList{"count/services": resource.MustParse("0")}), "exceeded quota")
		},
		Title: "a quota that leaves no Service is reported, tried again with backoff, and recovers"},
	{ID: "fault/32-admission",
		Run:   func(t *suite.T) { denied(t, t.Forbid(suite.ConfigMaps, "false", notAllowed), notAllowed) },
		Title: "an admission policy that denies the ConfigMap is reported, tried again with backoff, and recovers"},
	{ID: "fault/35-sidecar-disliked", Run: sidecarDisliked,
		Title: "a policy that refuses an injected sidecar is reported; the sidecar stays; it recovers"},
	{ID: "fault/36-long-message", Run: longMessage,
		Title: "a message of more than 1,024 bytes reaches the event, shortened"},
	{ID: "fault/37-no-spec", Fast: true, Run: noSpec,
		Title: "a MyWeb without spec is refused with the schema's message, whatever webhooks there are"},
	{ID: "fault/37-wrong-types", Fast: true, Run: wrongTypes,
		Title: "values of a wrong type are refused with the path of the field, whatever webhooks there are"},
}

// notAllowed is the message of a policy of the lab.
const notAllowed = "the lab does not allow it"

// denied creates a MyWeb with a child that is not allowed, and allows it later.
func denied(t *suite.T, allow func(), message string) {
	t.Create("web", suite.Sample())
	t.Reported("web", childRejected, patience, message)
	wantBackoff(t)
	if t.Web("web").Status.Completed {
		t.Errorf("completed, though a child is denied")
	}
	allow()
	recovers(t)
	wantMade(t, 0, 1, suite.Kinds...)
}

// sidecarDisliked makes another program inject a sidecar, and a policy refuse it later.
func sidecarDisliked(t *suite.T) {
	before := t.Children(t.Serve("web", suite.Sample()))
	inject(t)
	converged(t, "web")
	without := `!object.spec.template.spec.containers.exists(c, c.name == "sidecar")`
	allow := t.Forbid(suite.Deployments, without, notAllowed)
	mark := t.Mark()
	web := t.Patch("web", `{"spec":{"image":"nginx:2"}}`)
	web = t.Await("web", "is Degraded for ChildRejected", patience, func(w *suite.Web) bool {
		if !hasSidecar(t.Children(web)) {
			t.Fatalf("the operator took away a sidecar of another program: %s", suite.Lines(t.Writes(mark)))
		}
		return w.Degraded(childRejected)
	})
	t.Says(web, notAllowed)
	wantBackoff(t)
	t.Warned("web", 1, 1)
	allow()
	_, after := converged(t, "web")
	t.SameChildren(before, after)
	if !hasSidecar(after) {
		t.Errorf("in the end the sidecar is gone")
	}
}

// longestNote is how many bytes the API server accepts in the note of an event.
const longestNote = 1024

// longMessage has a policy with a long message, in characters of two bytes, so that a cut may fall into a character.
func longMessage(t *suite.T) {
	long := "The page is not allowed: " + strings.Repeat("ö", longestNote) + "."
	allow := t.Forbid(suite.ConfigMaps, "false", long)
	t.Create("web", suite.Sample())
	begin := "The page is not allowed: ööö"
	t.Reported("web", childRejected, patience, begin)
	awaitWarning(t, "web")
	t.Pause(2 * time.Second)
	for _, e := range t.Events("web") {
		if e.Type != corev1.EventTypeWarning {
			continue
		}
		n := len(e.Note)
		if n > longestNote || n < longestNote/2 || !utf8.ValidString(e.Note) || !strings.Contains(e.Note, begin) {
			t.Errorf("the note of the event has %d bytes, wanted nearly %d, with the beginning of the message: %q",
				n, longestNote, e.Note)
		}
	}
	t.Warned("web", 1, 1)
	allow()
	converged(t, "web")
}
