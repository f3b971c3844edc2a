package manifests_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/operator-workshop/06-deploy/internal/kustomize"
	"example.com/operator-workshop/06-deploy/internal/manifests"
	"example.com/operator-workshop/06-deploy/internal/testenv"
)

const config = "../../config"

// server is the administrator's client of a real API server, with the objects that every way to deploy expects.
var server client.Client

func TestMain(m *testing.M) {
	os.Exit(testenv.Main(m, func(cfg *rest.Config) (err error) {
		server, err = client.New(cfg, client.Options{})
		return err
	}, "testdata", config+"/crd/operator.k8s-summit.org_mywebs.yaml"))
}

// ways are the folders that can be deployed, such as 04/webhooks, with the objects of each.
func ways(t *testing.T) map[string][]*unstructured.Unstructured {
	t.Helper()
	found := map[string][]*unstructured.Unstructured{}
	for _, impl := range []string{"03", "04"} {
		folders, err := fs.Glob(os.DirFS(config), impl+"/*/kustomization.yaml")
		testenv.Must(t, err)
		for _, file := range folders {
			way := filepath.Dir(file)
			found[way], err = kustomize.Build(filepath.Join(config, way))
			testenv.Must(t, err)
		}
	}
	if len(found) < 9 {
		t.Fatalf("there are %d ways", len(found))
	}
	return found
}

// only returns the objects of a kind, typed.
func only[T any](t *testing.T, all []*unstructured.Unstructured, kind string) []T {
	t.Helper()
	some, err := manifests.Only[T](all, kind)
	testenv.Must(t, err)
	return some
}

// operator returns the one Deployment there is.
func operator(t *testing.T, all []*unstructured.Unstructured) *appsv1.Deployment {
	t.Helper()
	deployments := only[appsv1.Deployment](t, all, "Deployment")
	if len(deployments) != 1 {
		t.Fatalf("there are %d Deployments", len(deployments))
	}
	return &deployments[0]
}

// container returns the one container there is.
func container(t *testing.T, all []*unstructured.Unstructured) *corev1.Container {
	t.Helper()
	containers := operator(t, all).Spec.Template.Spec.Containers
	if len(containers) != 1 {
		t.Fatalf("there are %d containers", len(containers))
	}
	return &containers[0]
}

// argument returns the value of a flag, and whether it is given.
func argument(t *testing.T, all []*unstructured.Unstructured, name string) (value string, given bool) {
	t.Helper()
	for _, arg := range container(t, all).Args {
		if flag, value, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "="); flag == name {
			return value, true
		}
	}
	return "", false
}

// exists reports whether an object is among those that a way makes.
func exists(all []*unstructured.Unstructured, kind, namespace, name string) bool {
	return slices.ContainsFunc(all, func(o *unstructured.Unstructured) bool {
		return o.GetKind() == kind && o.GetNamespace() == namespace && o.GetName() == name
	})
}

// prepare creates the objects that a dry run of other objects needs.
func prepare(t *testing.T, all []*unstructured.Unstructured) {
	t.Helper()
	needed := []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "websites"}}}
	for _, n := range only[corev1.Namespace](t, all, "Namespace") {
		needed = append(needed, &n)
	}
	for _, a := range only[corev1.ServiceAccount](t, all, "ServiceAccount") {
		needed = append(needed, &a)
	}
	for _, p := range only[schedulingv1.PriorityClass](t, all, "PriorityClass") {
		needed = append(needed, &p)
	}
	for _, object := range needed {
		if err := server.Create(t.Context(), object); client.IgnoreAlreadyExists(err) != nil {
			t.Fatal(err)
		}
	}
}
