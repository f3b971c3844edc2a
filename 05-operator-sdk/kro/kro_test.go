// Package kro_test tests the graph of MyWeb: kro runs as a process of its own, on a real API server, as a user who may
// do only what config/rbac/role.yaml grants. No controller of Kubernetes runs there, so nobody makes pods.
package kro_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/operator-workshop/05-operator-sdk/kro/internal/testenv"
)

var (
	myWebs = schema.GroupVersionKind{Group: "operator.k8s-summit.org", Version: "v1", Kind: "MyWeb"}
	graphs = schema.GroupVersionKind{Group: "kro.run", Version: "v1alpha1", Kind: "ResourceGraphDefinition"}
)

// TestTheGraph is a story: each step begins where the one before ended.
func TestTheGraph(t *testing.T) {
	kro := startKro(t)
	for _, step := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"an invalid graph is reported", invalidGraph},
		{"the graph becomes a CRD", graphBecomesCRD},
		{"a MyWeb becomes three children", threeChildren},
		{"a deleted child returns", deletedChild},
		{"an edited field is restored", editedField},
		{"a changed page changes the template", changedPage},
		{"the status follows the Deployment", statusFollows},
		{"a deleted MyWeb takes its children along", deletedMyWeb},
		{"kro uses its permissions, all of them", permissions},
	} {
		if !t.Run(step.name, step.run) {
			return
		}
	}
	if refused := kro.Logged("forbidden"); len(refused) > 0 {
		t.Errorf("the role lacks something:\n%s", strings.Join(refused, "\n"))
	}
	kro.Terminate()
}

func invalidGraph(t *testing.T) {
	wrong := testenv.ReadManifest[unstructured.Unstructured](t, "testdata/wrong-field.yaml")
	create(t, wrong)
	eventually(t, func() error {
		got, err := get(t, of(graphs), wrong.GetName())
		if c := condition(got, "GraphAccepted"); !strings.HasPrefix(c, "False") || !strings.Contains(c, "pages") {
			return fmt.Errorf("GraphAccepted is %s, want False and the field, %w", c, err)
		}
		return err
	})
	if got, err := get(t, of(graphs), wrong.GetName()); err != nil || status[string](got, "state") != "Inactive" {
		t.Errorf("the state is %q, %v", status[string](got, "state"), err)
	}
	if err := server.Delete(t.Context(), wrong); err != nil {
		t.Fatal(err)
	}
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
	for name, spec := range map[string]map[string]any{
		"no image":          {"replicas": int64(1)},
		"an empty image":    {"image": ""},
		"too many replicas": {"image": "nginx", "replicas": int64(11)},
		"a low port":        {"image": "nginx", "nodePortNumber": int64(80)},
		"a large page":      {"image": "nginx", "pageContentHtml": strings.Repeat("x", 131073)},
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

func threeChildren(t *testing.T) {
	web := testenv.ReadManifest[unstructured.Unstructured](t, "config/samples/myweb.yaml")
	create(t, web)
	page, _, _ := unstructured.NestedString(web.Object, "spec", "pageContentHtml")
	eventually(t, func() error {
		configMap, err := get(t, &corev1.ConfigMap{}, "myweb")
		if err == nil && configMap.Data["index.html"] != page {
			err = fmt.Errorf("the page is %q", configMap.Data["index.html"])
		}
		return err
	})
	want := map[string]string{"app.kubernetes.io/name": "myweb", "app.kubernetes.io/instance": "myweb"}
	eventually(t, func() error {
		deployment, err := get(t, &appsv1.Deployment{}, "myweb")
		if err != nil {
			return err
		}
		if image := deployment.Spec.Template.Spec.Containers[0].Image; image != "nginx" || *deployment.Spec.Replicas != 1 {
			return fmt.Errorf("%d pods of %s", *deployment.Spec.Replicas, image)
		}
		if diff := cmp.Diff(want, deployment.Spec.Selector.MatchLabels); diff != "" {
			return fmt.Errorf("selector: %s", diff)
		}
		if owner := metav1.GetControllerOf(deployment); owner == nil || owner.UID != web.GetUID() {
			return fmt.Errorf("the controller of the Deployment is %v", owner)
		}
		return nil
	})
	eventually(t, func() error {
		service, err := get(t, &corev1.Service{}, "myweb")
		if err != nil {
			return err
		}
		if port := service.Spec.Ports[0].NodePort; port != 30100 || !maps.Equal(service.Spec.Selector, want) {
			return fmt.Errorf("node port %d to %v", port, service.Spec.Selector)
		}
		return nil
	})
}

func deletedChild(t *testing.T) {
	for _, child := range []client.Object{&corev1.ConfigMap{}, &appsv1.Deployment{}, &corev1.Service{}} {
		before, err := get(t, child, "myweb")
		if err != nil {
			t.Fatal(err)
		}
		uid := before.GetUID()
		if err := server.Delete(t.Context(), child); err != nil {
			t.Fatal(err)
		}
		eventually(t, func() error {
			now, err := get(t, child, "myweb")
			if err == nil && now.GetUID() == uid {
				err = fmt.Errorf("%T is not deleted yet", child)
			}
			return err
		})
	}
}

func editedField(t *testing.T) {
	deployment, err := get(t, &appsv1.Deployment{}, "myweb")
	if err != nil {
		t.Fatal(err)
	}
	deployment.Spec.Replicas = new(int32(5))
	if err := server.Update(t.Context(), deployment); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		now, err := get(t, &appsv1.Deployment{}, "myweb")
		if err == nil && *now.Spec.Replicas != 1 {
			err = fmt.Errorf("%d replicas", *now.Spec.Replicas)
		}
		return err
	})
}

func changedPage(t *testing.T) {
	deployment, err := get(t, &appsv1.Deployment{}, "myweb")
	if err != nil {
		t.Fatal(err)
	}
	hash := deployment.Spec.Template.Annotations["operator.k8s-summit.org/page-hash"]
	patch(t, `{"spec":{"pageContentHtml":null,"nodePortNumber":null,"replicas":2}}`)
	eventually(t, func() error {
		now, err := get(t, &appsv1.Deployment{}, "myweb")
		if err == nil && (*now.Spec.Replicas != 2 || hash == "" ||
			now.Spec.Template.Annotations["operator.k8s-summit.org/page-hash"] == hash) {
			err = fmt.Errorf("%d replicas, hash %v", *now.Spec.Replicas, now.Spec.Template.Annotations)
		}
		return err
	})
	if service, err := get(t, &corev1.Service{}, "myweb"); err != nil || service.Spec.Ports[0].NodePort != 30100 {
		t.Errorf("a node port that is not asked for any more is not kept: %v, %v", service.Spec.Ports, err)
	}
}

// statusFollows plays the part of the Deployment's controller, which does not run here.
func statusFollows(t *testing.T) {
	deployment, err := get(t, &appsv1.Deployment{}, "myweb")
	if err != nil {
		t.Fatal(err)
	}
	if web, err := get(t, of(myWebs), "myweb"); err != nil || status[bool](web, "completed") {
		t.Errorf("nobody made pods, and the MyWeb is completed: %v, %v", web.Object["status"], err)
	}
	deployment.Status = appsv1.DeploymentStatus{ObservedGeneration: deployment.Generation, Replicas: 2, UpdatedReplicas: 2,
		ReadyReplicas: 2, AvailableReplicas: 2, Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable,
			Status: corev1.ConditionTrue, Reason: "MinimumReplicasAvailable"}}}
	if err := server.Status().Update(t.Context(), deployment); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		web, err := get(t, of(myWebs), "myweb")
		if !status[bool](web, "completed") || status[int64](web, "observedGeneration") != web.GetGeneration() ||
			status[int64](web, "readyReplicas") != 2 || status[int64](web, "nodePort") != 30100 ||
			!strings.HasPrefix(condition(web, "Available"), "True") || !strings.HasPrefix(condition(web, "Degraded"), "False") {
			return fmt.Errorf("the status is %v, %w", web.Object["status"], err)
		}
		return err
	})
}

func deletedMyWeb(t *testing.T) {
	web := of(myWebs)
	web.SetNamespace("default")
	web.SetName("myweb")
	if err := server.Delete(t.Context(), web); err != nil {
		t.Fatal(err)
	}
	for _, gone := range []client.Object{&corev1.ConfigMap{}, &appsv1.Deployment{}, &corev1.Service{}, of(myWebs)} {
		eventually(t, func() error {
			if _, err := get(t, gone, "myweb"); !apierrors.IsNotFound(err) {
				return fmt.Errorf("%T is still there: %w", gone, err)
			}
			return nil
		})
	}
}

// permissions compares what the role grants with what the API server was asked for.
func permissions(t *testing.T) {
	granted := map[string]bool{}
	for _, rule := range testenv.ReadManifest[rbacv1.ClusterRole](t, "config/rbac/role.yaml").Rules {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				granted[verb+" "+resource+"."+rule.APIGroups[0]] = true
			}
		}
	}
	used := map[string]bool{}
	for _, r := range audit.Of(t, user) {
		resource := r.ObjectRef.Resource
		if r.ObjectRef.Subresource != "" {
			resource += "/" + r.ObjectRef.Subresource
		}
		if resource != "" {
			used[r.Verb+" "+resource+"."+r.ObjectRef.APIGroup] = true
		}
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(used)), slices.Sorted(maps.Keys(granted))); diff != "" {
		t.Errorf("permissions (-used +granted):\n%s", diff)
	}
}

func patch(t *testing.T, merge string) {
	t.Helper()
	web := of(myWebs)
	web.SetNamespace("default")
	web.SetName("myweb")
	if err := server.Patch(t.Context(), web, client.RawPatch("application/merge-patch+json", []byte(merge))); err != nil {
		t.Fatal(err)
	}
}
