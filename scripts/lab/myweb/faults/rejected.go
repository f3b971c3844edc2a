package faults

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"example.com/operator-workshop/scripts/lab/myweb"
	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

// refusalChecks are the checks of refusals of the API server.
var refusalChecks = []suite.Check{
	{ID: "fault/35-sidecar-disliked", Run: sidecarDisliked,
		Title: "a policy that refuses an injected sidecar is reported; the sidecar stays; it recovers"},
	{ID: "fault/36-long-message", Run: longMessage,
		Title: "a message of more than 1,024 bytes reaches the event, shortened"},
	{ID: "fault/37-no-spec", Fast: true, Run: noSpec,
		Title: "a MyWeb without spec is refused with the schema's message, whatever webhooks there are"},
	{ID: "fault/37-wrong-types", Fast: true, Run: wrongTypes,
		Title: "values of a wrong type are refused with the path of the field, whatever webhooks there are"},
}

// sidecarDisliked makes another program inject a sidecar, and a policy refuse it later.
func sidecarDisliked(t *suite.T) {
	before := t.Children(t.Serve("web", suite.Sample()))
	t.Set(suite.Deployments, "web", "/spec/template/spec/containers/-",
		map[string]any{"name": "sidecar", "image": "example.com/sidecar"})
	converged(t, "web")
	without := `!object.spec.template.spec.containers.exists(c, c.name == "sidecar")`
	allow := t.Forbid(suite.Deployments, without, notAllowed)
	mark := t.Mark()
	t.Patch("web", `{"spec":{"image":"nginx:2"}}`)
	web := t.Await("web", "is Degraded for ChildRejected", patience, func(w *suite.Web) bool {
		if !hasSidecar(t) {
			t.Fatalf("the operator took away a sidecar of another program: %s", suite.Lines(t.Writes(mark)))
		}
		return w.Degraded("ChildRejected") && !w.Status.Completed
	})
	t.Says(web, notAllowed)
	wantBackoff(t)
	t.Warned("web", 1, 1)
	allow()
	_, after := converged(t, "web")
	t.SameChildren(before, after)
	if !hasSidecar(t) {
		t.Errorf("in the end the sidecar is gone")
	}
}

func hasSidecar(t *suite.T) bool {
	d := t.Read(suite.Deployments, "web")
	containers, _, _ := unstructured.NestedSlice(d.Object, "spec", "template", "spec", "containers")
	return slices.ContainsFunc(containers, func(c any) bool { return c.(map[string]any)["name"] == "sidecar" })
}

// longestNote is how many bytes the API server accepts in the note of an event.
const longestNote = 1024

// longMessage has a policy with a long message, in characters of two bytes, so that a cut may fall into a character.
func longMessage(t *suite.T) {
	long := "The page is not allowed: " + strings.Repeat("ö", longestNote) + "."
	allow := t.Forbid(suite.ConfigMaps, "false", long)
	t.Create("web", suite.Sample())
	begin := "The page is not allowed: ööö"
	t.Reported("web", "ChildRejected", patience, begin)
	t.Eventually("there is a Warning", patience, func() error {
		warned := t.Warnings("web")
		if len(warned) == 0 {
			return fmt.Errorf("no Warning about the MyWeb")
		}
		return nil
	})
	t.Pause(2 * time.Second)
	for _, e := range t.Events("web") {
		if e.Type != "Warning" {
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

// anything creates a MyWeb with the given fields beside its metadata.
func anything(t *suite.T, fields map[string]any) error {
	u := &unstructured.Unstructured{Object: fields}
	u.SetGroupVersionKind(myweb.MyWebs.GroupVersion().WithKind("MyWeb"))
	u.SetName("odd")
	webs := t.Objects(suite.Resource)
	_, err := webs.Create(t.Context(), u, metav1.CreateOptions{})
	return err
}

// wantBlame fails unless an error is a refusal by the schema that names the field.
func wantBlame(t *suite.T, what string, err error, field string) {
	cause := func(c metav1.StatusCause) bool { return c.Field == field }
	var answer apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &answer) ||
		!slices.ContainsFunc(answer.Status().Details.Causes, cause) {
		t.Errorf("%s was answered with %v, not with a refusal that names %s", what, err, field)
	}
}

func noSpec(t *suite.T) {
	wantBlame(t, "a MyWeb without spec", anything(t, map[string]any{}), "spec")
	wantBlame(t, "a MyWeb whose spec is null", anything(t, map[string]any{"spec": nil}), "spec")
	wantBlame(t, "a MyWeb whose spec is empty", anything(t, map[string]any{"spec": map[string]any{}}), "spec.image")
}

func wrongTypes(t *suite.T) {
	wantBlame(t, "a spec that is a text", anything(t, map[string]any{"spec": "x"}), "spec")
	wantBlame(t, "a spec that is a list", anything(t, map[string]any{"spec": []any{"x"}}), "spec")
	for field, value := range map[string]any{"image": int64(5), "nodePortNumber": "thirty", "replicas": "two",
		"pageContentHtml": []any{"x"}} {
		spec := map[string]any{"image": "nginx", field: value}
		wantBlame(t, field+" of a wrong type", anything(t, map[string]any{"spec": spec}), "spec."+field)
		spec["pageContentHtml"] = map[string]any{"x": "y"}
		wantBlame(t, "a page and "+field+" of wrong types", anything(t, map[string]any{"spec": spec}), "spec.pageContentHtml")
	}
}
