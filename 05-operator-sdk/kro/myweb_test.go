package kro_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/operator-workshop/05-operator-sdk/kro/internal/testenv"
)

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

func editedField(t *testing.T) {
	deployment, err := get(t, &appsv1.Deployment{}, "myweb")
	testenv.Must(t, err)
	deployment.Spec.Replicas = new(int32(5))
	testenv.Must(t, server.Update(t.Context(), deployment))
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
	testenv.Must(t, err)
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
	testenv.Must(t, err)
	if web, err := get(t, of(myWebs), "myweb"); err != nil || status[bool](web, "completed") {
		t.Errorf("there are no pods, and the MyWeb is completed: %v, %v", web.Object["status"], err)
	}
	deployment.Status = appsv1.DeploymentStatus{ObservedGeneration: deployment.Generation, Replicas: 2, UpdatedReplicas: 2,
		ReadyReplicas: 2, AvailableReplicas: 2, Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable,
			Status: corev1.ConditionTrue, Reason: "MinimumReplicasAvailable"}}}
	testenv.Must(t, server.Status().Update(t.Context(), deployment))
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
	testenv.Must(t, server.Delete(t.Context(), web))
	for _, gone := range []client.Object{&corev1.ConfigMap{}, &appsv1.Deployment{}, &corev1.Service{}, of(myWebs)} {
		eventually(t, func() error {
			if _, err := get(t, gone, "myweb"); !apierrors.IsNotFound(err) {
				return fmt.Errorf("%T is still there: %w", gone, err)
			}
			return nil
		})
	}
}

func patch(t *testing.T, merge string) {
	t.Helper()
	web := of(myWebs)
	web.SetNamespace("default")
	web.SetName("myweb")
	testenv.Must(t, server.Patch(t.Context(), web, client.RawPatch(types.MergePatchType, []byte(merge))))
}
