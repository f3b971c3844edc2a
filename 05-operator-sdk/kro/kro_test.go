// Package kro_test tests the graph of MyWeb: kro runs as a separate process, on a real API server, as a user with only
// the permissions of config/rbac/role.yaml. No controller of Kubernetes runs there, so a Deployment gets no pods.
package kro_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/operator-workshop/05-operator-sdk/kro/internal/testenv"
)

var (
	myWebs    = schema.GroupVersionKind{Group: "operator.k8s-summit.org", Version: "v1", Kind: "MyWeb"}
	graphs    = schema.GroupVersionKind{Group: "kro.run", Version: "v1alpha1", Kind: "ResourceGraphDefinition"}
	revisions = schema.GroupVersionKind{Group: "internal.kro.run", Version: "v1alpha1", Kind: "GraphRevisionList"}
	crds      = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
)

// TestTheGraph has steps: each step begins with the state at the end of the previous step.
func TestTheGraph(t *testing.T) {
	kro := startKro(t)
	for _, step := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"the graph becomes a CRD", graphBecomesCRD},
		{"a MyWeb becomes three children", threeChildren},
		{"an edited field is restored", editedField},
		{"a changed page changes the template", changedPage},
		{"the status follows the Deployment", statusFollows},
		{"a deleted MyWeb takes its children along", deletedMyWeb},
		{"a changed graph changes the CRD", changedGraph},
		{"kro uses its permissions, all of them", permissions},
	} {
		if !t.Run(step.name, step.run) {
			return
		}
	}
	if strings.Contains(kro.Output(), "forbidden") {
		t.Errorf("the role lacks something:\n%s", kro.Output())
	}
	kro.Terminate()
}

func graphBecomesCRD(t *testing.T) {
	graph := testenv.ReadManifest[unstructured.Unstructured](t, "config/graph/myweb.yaml")
	create(t, graph)
	eventually(t, func() error {
		got, err := get(t, of(graphs), graph.GetName())
		if status[string](got, "state") != "Active" {
			return fmt.Errorf("the state is not Active, %w: %v", err, status[[]any](got, "conditions"))
		}
		return err
	})
	want := testenv.ReadManifest[unstructured.Unstructured](t, "config/made-by-kro/operator.k8s-summit.org_mywebs.yaml")
	if made, err := get(t, of(crds), want.GetName()); err != nil || !cmp.Equal(want.Object["spec"], made.Object["spec"]) {
		t.Errorf("kro made another CRD (-file +made): %v\n%s", err, cmp.Diff(want.Object["spec"], made.Object["spec"]))
	}
	for name, spec := range map[string]map[string]any{
		"no image":          {"replicas": int64(1)},
		"an empty image":    {"image": ""},
		"too many replicas": {"image": "nginx", "replicas": int64(11)},
		"a low port":        {"image": "nginx", "nodePortNumber": int64(80)},
		"a large page":      {"image": "nginx", "pageContentHtml": strings.Repeat("x", 40001)},
	} {
		web := of(myWebs)
		web.SetNamespace("default")
		web.SetName("bad")
		web.Object["spec"] = spec
		if err := server.Create(t.Context(), web, client.DryRunAll); !apierrors.IsInvalid(err) {
			t.Errorf("%s: got %v, want a refusal", name, err)
		}
	}
}

func changedGraph(t *testing.T) {
	graph := testenv.ReadManifest[unstructured.Unstructured](t, "config/graph/myweb.yaml")
	merge := `{"spec":{"schema":{"spec":{"title":"string"}}}}`
	testenv.Must(t, server.Patch(t.Context(), graph, client.RawPatch(types.MergePatchType, []byte(merge))))
	eventually(t, func() error {
		crd, err := get(t, of(crds), "mywebs.operator.k8s-summit.org")
		if text := fmt.Sprint(crd.Object["spec"]); !strings.Contains(text, "title:") {
			return fmt.Errorf("the CRD has no field title: %s, %w", text, err)
		}
		return err
	})
	eventually(t, func() error {
		all := &unstructured.UnstructuredList{}
		all.SetGroupVersionKind(revisions)
		if err := server.List(t.Context(), all); err != nil || len(all.Items) != 1 {
			return fmt.Errorf("%d revisions are kept, want the newest, %w", len(all.Items), err)
		}
		return nil
	})
}
