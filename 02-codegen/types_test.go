package codegen_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"sigs.k8s.io/yaml"

	"example.com/operator-workshop/02-codegen/internal/testenv"
	webv1 "example.com/operator-workshop/02-codegen/pkg/apis/myweb/v1"
)

// crdDiff compares the meaning of two CRDs: "" when they have the same meaning, else the paths that differ.
// It ignores comments, the order of fields, and annotations, in which controller-gen records its version.
func crdDiff(want, got []byte) (string, error) {
	var flat [2]map[string]any
	for i, data := range [][]byte{want, got} {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(data, crd); err != nil {
			return "", err
		}
		crd.Annotations = nil
		object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(crd)
		if err != nil {
			return "", err
		}
		flat[i] = map[string]any{}
		flatten("", object, flat[i])
	}
	return cmp.Diff(flat[0], flat[1]), nil
}

// flatten writes each leaf of the value under its path into the map. An empty object is a leaf.
func flatten(path string, value any, into map[string]any) {
	switch value := value.(type) {
	case map[string]any:
		for key, child := range value {
			flatten(path+"."+key, child, into)
		}
		if len(value) == 0 {
			into[path] = "{}"
		}
	case []any:
		for i, child := range value {
			flatten(fmt.Sprintf("%s[%d]", path, i), child, into)
		}
	default:
		into[path] = value
	}
}

func TestTheGeneratedCRDIsTheHandWrittenOne(t *testing.T) {
	root, err := testenv.Root()
	if err != nil {
		t.Skipf("chapter 01 is not here to compare with: %v", err)
	}
	want, err := os.ReadFile(filepath.Join(root, "01-crd", generatedCRD))
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(generatedCRD)
	if err != nil {
		t.Fatal(err)
	}
	diff, err := crdDiff(want, got)
	if err != nil {
		t.Fatal(err)
	}
	if diff != "" {
		t.Errorf("CRD (-written by hand in 01 +generated from types.go):\n%s", diff)
	}
}

func TestADifferenceOfCRDsIsShown(t *testing.T) {
	crd, err := os.ReadFile(generatedCRD)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct{ old, new, want string }{
		"nothing":       {"", "", ""},
		"a comment":     {"---\n", "# by hand\n---\n", ""},
		"an annotation": {"v0.23.0", "v0.0.1", ""},
		"a bound":       {"maximum: 10\n", "maximum: 11\n", "replicas.maximum"},
		"a default":     {"default: 1\n", "default: 2\n", "replicas.default"},
		"a column": {"jsonPath: .status.nodePort\n", "jsonPath: .spec.nodePortNumber\n",
			".spec.versions[0].additionalPrinterColumns[1].jsonPath"},
		"a subresource":  {"      status: {}\n", "", ".spec.versions[0].subresources.status"},
		"a short name":   {"    - web\n", "    - site\n", ".spec.names.shortNames[0]"},
		"a rule's words": {"must be an image reference", "must be an image", "x-kubernetes-validations[0].message"},
		"a description":  {"Only the operator writes", "The operator writes", "status.description"},
		"the list's keys": {"x-kubernetes-list-type: map", "x-kubernetes-list-type: atomic",
			"conditions.x-kubernetes-list-type"},
	} {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(string(crd), test.old) {
				t.Fatalf("the CRD does not contain %q", test.old)
			}
			diff, err := crdDiff(crd, []byte(strings.Replace(string(crd), test.old, test.new, 1)))
			if err != nil {
				t.Fatal(err)
			}
			if (diff == "") != (test.want == "") || !strings.Contains(diff, test.want) {
				t.Errorf("difference %q, want one that names %q", diff, test.want)
			}
		})
	}
}

// fullMyWeb has a value in every field of spec and status.
func fullMyWeb(name string) *webv1.MyWeb {
	web := newMyWeb(name)
	web.Labels = map[string]string{"tier": "front"}
	web.Spec = webv1.MyWebSpec{Image: "nginx", NodePortNumber: new(int32(30100)), PageContentHTML: new("<h1>Hi</h1>"),
		Replicas: new(int32(2))}
	web.Status = webv1.MyWebStatus{
		Completed: true, NodePort: 30100, ObservedGeneration: 1, ReadyReplicas: 2,
		Selector: "app.kubernetes.io/instance=" + name,
		Conditions: []metav1.Condition{{
			Type: webv1.ConditionAvailable, Status: metav1.ConditionTrue, Reason: webv1.ReasonServing, Message: "2 pods",
			ObservedGeneration: 1, LastTransitionTime: metav1.Unix(0, 0),
		}},
	}
	return web
}

// The API server would prune a field of the types that the CRD does not name.
func TestTheCRDHasEveryFieldOfTheTypes(t *testing.T) {
	webs := newWebs(t)
	want := fullMyWeb("full")
	for _, part := range []reflect.Value{reflect.ValueOf(want.Spec), reflect.ValueOf(want.Status)} {
		for i := range part.NumField() {
			if part.Field(i).IsZero() {
				t.Errorf("fullMyWeb leaves %s empty: nothing would be seen of it here", part.Type().Field(i).Name)
			}
		}
	}
	created := create(t, webs, want.DeepCopy())
	created.Status = want.Status
	got, err := webs.UpdateStatus(t.Context(), created, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.Spec, got.Spec); diff != "" {
		t.Errorf("spec (-sent +stored):\n%s", diff)
	}
	if diff := cmp.Diff(want.Status, got.Status); diff != "" {
		t.Errorf("status (-sent +stored):\n%s", diff)
	}
}

func TestADeepCopySharesNothing(t *testing.T) {
	original := fullMyWeb("shop")
	copied := original.DeepCopyObject().(*webv1.MyWeb)
	if diff := cmp.Diff(original, copied); diff != "" {
		t.Fatalf("copy (-original +copy):\n%s", diff)
	}

	copied.Labels["tier"] = "back"
	*copied.Spec.NodePortNumber, *copied.Spec.Replicas = 1, 1
	*copied.Spec.PageContentHTML = "changed"
	copied.Status.Conditions[0].Message = "changed"

	if diff := cmp.Diff(fullMyWeb("shop"), original); diff != "" {
		t.Errorf("a change of the copy reached the original (-before +after):\n%s", diff)
	}
}

func TestASchemeLearnsTheKinds(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := webv1.Install(scheme); err != nil {
		t.Fatal(err)
	}
	for kind, want := range map[string]runtime.Object{"MyWeb": &webv1.MyWeb{}, "MyWebList": &webv1.MyWebList{}} {
		got, err := scheme.New(webv1.SchemeGroupVersion.WithKind(kind))
		if err != nil {
			t.Errorf("new %s: %v", kind, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", kind, diff)
		}
	}
}
