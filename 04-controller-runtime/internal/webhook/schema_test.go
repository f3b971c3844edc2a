package webhook

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
)

// raw is a MyWeb of any shape; nil means without spec.
func raw(namespace, name string, spec any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(webv1.SchemeGroupVersion.WithKind("MyWeb"))
	u.SetNamespace(namespace)
	u.SetName(name)
	if spec != nil {
		u.Object["spec"] = spec
	}
	return u
}

// TestTheSchemaRefusesWrongTypes tests the shipped configurations with objects that cannot be decoded: the refusal must
// be the schema's, with the path of the field, as without webhooks.
func TestTheSchemaRefusesWrongTypes(t *testing.T) {
	ns := namespace(t)
	specs := map[string]struct {
		spec        any
		field, text string
	}{
		"no spec":                   {nil, "spec", "Required value"},
		"a spec that is a string":   {"x", "spec", "must be of type object"},
		"a spec that is a list":     {[]any{"x"}, "spec", "must be of type object"},
		"an empty spec":             {map[string]any{}, "spec.image", "Required value"},
		"an image that is a number": {map[string]any{"image": int64(5)}, "spec.image", "must be of type string"},
		"a page that is a number": {
			map[string]any{"image": pinned, "pageContentHtml": int64(5)}, "spec.pageContentHtml", "must be of type string"},
		"a port that is a string": {
			map[string]any{"image": pinned, "nodePortNumber": "http"}, "spec.nodePortNumber", "must be of type integer"},
		"replicas that are a fraction": {
			map[string]any{"image": pinned, "replicas": 1.5}, "spec.replicas", "must be of type int32"},
	}
	answers := func(t *testing.T, old *webv1.MyWeb) map[string]string {
		all := map[string]string{}
		for name, test := range specs {
			created := admin.Create(t.Context(), raw(ns, "created", test.spec), client.DryRunAll)
			update := raw(ns, old.Name, test.spec)
			update.SetResourceVersion(old.ResourceVersion)
			updated := admin.Update(t.Context(), update, client.DryRunAll)
			for how, err := range map[string]error{"create": created, "update": updated} {
				all[how+", "+name] = err.Error()
				if !apierrors.IsInvalid(err) || !hasCause(err, test.field, test.text) {
					t.Errorf("%s, %s: want %s: %s, got %v", how, name, test.field, test.text, err)
				}
			}
		}
		return all
	}
	old := create(t, myweb(ns, "old", page("x")))
	without := answers(t, old)
	serve(t)
	if diff := cmp.Diff(without, answers(t, old)); diff != "" {
		t.Error("webhooks change the answer:", diff)
	}
}

// hasCause reports whether err names a field with a message.
func hasCause(err error, field, message string) bool {
	status, ok := err.(apierrors.APIStatus)
	return ok && status.Status().Details != nil &&
		slices.ContainsFunc(status.Status().Details.Causes, func(c metav1.StatusCause) bool {
			return c.Field == field && strings.Contains(c.Message, message)
		})
}
