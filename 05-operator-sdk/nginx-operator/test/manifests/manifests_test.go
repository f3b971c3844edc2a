// Package manifests tests the objects of config/ on a real API server.
package manifests

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/internal/testenv"
)

var (
	config  *rest.Config
	kubectl string
)

func TestMain(m *testing.M) {
	os.Exit(testenv.Main(m, func(cfg *rest.Config) error {
		assets, err := testenv.Assets()
		config, kubectl = cfg, filepath.Join(assets, "kubectl")
		return err
	}, "testdata")) // testdata has CRDs without a schema for the kinds of other projects
}

// build returns the objects that kustomize builds from a folder of config/.
func build(t *testing.T, folder string) (all []*unstructured.Unstructured) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), kubectl, "kustomize",
		filepath.Join("..", "..", "config", folder)).Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		t.Fatalf("%v: %s", err, exit.Stderr)
	}
	if err != nil {
		t.Fatal(err)
	}
	for decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(string(out)), 4096); ; {
		object := &unstructured.Unstructured{}
		if decoder.Decode(&object.Object) != nil {
			return all
		}
		all = append(all, object)
	}
}

// only returns the objects of a kind, typed.
func only[T any](t *testing.T, all []*unstructured.Unstructured, kind string) (some []T) {
	t.Helper()
	for _, object := range all {
		if object.GetKind() != kind {
			continue
		}
		var typed T
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &typed); err != nil {
			t.Fatal(err)
		}
		some = append(some, typed)
	}
	return some
}

func manager(t *testing.T, all []*unstructured.Unstructured) *appsv1.Deployment {
	t.Helper()
	deployments := only[appsv1.Deployment](t, all, "Deployment")
	if len(deployments) != 1 {
		t.Fatalf("there are %d Deployments", len(deployments))
	}
	return &deployments[0]
}

func TestTheAPIServerAcceptsEveryWayToDeploy(t *testing.T) {
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, needed := range []string{namespace, "team-a", "team-b"} {
		made := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: needed}}
		if err := c.Create(t.Context(), made); err != nil {
			t.Fatal(err)
		}
	}
	for _, folder := range ways {
		t.Run(folder, func(t *testing.T) {
			for _, object := range build(t, folder) {
				err := c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object), client.DryRunAll,
					client.FieldOwner("test"), client.ForceOwnership)
				if err != nil {
					t.Errorf("%s %s: %v", object.GetKind(), object.GetName(), err)
				}
			}
		})
	}
}

// grants returns the roles that are bound, and where: "everywhere: manager-role".
func grants(t *testing.T, all []*unstructured.Unstructured) (found []string) {
	t.Helper()
	for _, b := range only[rbacv1.ClusterRoleBinding](t, all, "ClusterRoleBinding") {
		found = append(found, "everywhere: "+b.RoleRef.Name)
	}
	for _, b := range only[rbacv1.RoleBinding](t, all, "RoleBinding") {
		found = append(found, b.Namespace+": "+b.RoleRef.Name)
	}
	for i := range found {
		found[i] = strings.ReplaceAll(found[i], name+"-", "")
	}
	slices.Sort(found)
	return found
}

// watched returns the value or the field of WATCH_NAMESPACE, empty when it is not set.
func watched(t *testing.T, all []*unstructured.Unstructured) string {
	t.Helper()
	for _, env := range manager(t, all).Spec.Template.Spec.Containers[0].Env {
		switch {
		case env.Name == "WATCH_NAMESPACE" && env.ValueFrom != nil:
			return env.ValueFrom.FieldRef.FieldPath
		case env.Name == "WATCH_NAMESPACE":
			return env.Value
		}
	}
	return ""
}

func TestEachWayGrantsWhatItNeedsAndNoMore(t *testing.T) {
	for folder, want := range scopes {
		all := build(t, folder)
		if got := watched(t, all); got != want.watched {
			t.Errorf("%s: the operator watches %q, want %q", folder, got, want.watched)
		}
		if diff := cmp.Diff(want.grants, grants(t, all)); diff != "" {
			t.Errorf("%s: rights (-want +got):\n%s", folder, diff)
		}
	}
}

func TestSelectorsAreNeverMoreThanNameAndInstance(t *testing.T) {
	want := map[string]string{"app.kubernetes.io/name": name, "app.kubernetes.io/instance": name}
	all := build(t, "default")
	if diff := cmp.Diff(want, manager(t, all).Spec.Selector.MatchLabels); diff != "" {
		t.Error(diff)
	}
	for _, service := range only[corev1.Service](t, all, "Service") {
		if diff := cmp.Diff(want, service.Spec.Selector); diff != "" {
			t.Errorf("%s: %s", service.Name, diff)
		}
	}
}
