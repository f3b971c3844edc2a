package controller

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	proxyv1alpha1 "github.com/example/nginx-operator/api/v1alpha1"
	"github.com/example/nginx-operator/internal/owned"
)

// These tests call Reconcile by hand: they are about the effect of one reconcile.

func TestAChangedSpecChangesTheChildrenInPlace(t *testing.T) {
	b := newFixture(t)
	b.reconcile()
	pods, service := get(b.cluster, site, &appsv1.Deployment{}), get(b.cluster, site, &corev1.Service{})
	if got := pods.Spec.Template.Spec.Containers[0].Image; got != DefaultImage {
		t.Errorf("no image is named, the pods run %s", got)
	}
	b.deployed(site)
	for _, change := range []proxyv1alpha1.NginxSpec{
		{Count: 2, Image: "registry.example:5000/nginx", Service: proxyv1alpha1.NginxService{Type: "NodePort"}},
		{Count: 0, Service: proxyv1alpha1.NginxService{Type: "LoadBalancer"}},
		{Count: 3, Image: "nginx:1.28", Service: proxyv1alpha1.NginxService{Type: "ClusterIP"}},
	} {
		edit(b.cluster, site, &proxyv1alpha1.Nginx{}, func(n *proxyv1alpha1.Nginx) { n.Spec = change })
		if n := b.reconcile(); n != 3 {
			t.Errorf("a changed spec cost %d writes, want one for each child and one for status", n)
		}
		newPods, newService := get(b.cluster, site, &appsv1.Deployment{}), get(b.cluster, site, &corev1.Service{})
		if newPods.UID != pods.UID || newService.UID != service.UID || newService.Spec.ClusterIP != service.Spec.ClusterIP {
			t.Error("a child was made anew instead of changed")
		}
		if *newPods.Spec.Replicas != change.Count || string(newService.Spec.Type) != change.Service.Type ||
			change.Image != "" && newPods.Spec.Template.Spec.Containers[0].Image != change.Image {
			t.Errorf("%+v became %+v and %+v", change, newPods.Spec, newService.Spec)
		}
		if port := newService.Spec.Ports[0].NodePort; (port != 0) != (change.Service.Type != "ClusterIP") {
			t.Errorf("a Service of type %s has node port %d", change.Service.Type, port)
		}
		b.deployed(site)
		b.reconcile()
		if n := b.reconcile(); n != 0 {
			t.Errorf("in steady state %d writes were sent", n)
		}
	}
}

func TestChangedContentReachesThePods(t *testing.T) {
	b := newFixture(t, serving("page"))
	b.must(b.cluster.Create(t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "page"},
			Data: map[string]string{"index.html": "one"}}))
	b.reconcile()
	hash := func() string {
		return get(b.cluster, site, &appsv1.Deployment{}).Spec.Template.Annotations[contentHash]
	}
	one := hash()
	if len(one) != 16 {
		t.Errorf("the pods have the hash %q", one)
	}
	edit(b.cluster, "page", &corev1.ConfigMap{}, func(c *corev1.ConfigMap) { c.Labels = map[string]string{"a": "b"} })
	if n := b.reconcile(); n != 0 || hash() != one {
		t.Errorf("a label changed, %d writes were sent", n)
	}
	edit(b.cluster, "page", &corev1.ConfigMap{}, func(c *corev1.ConfigMap) { c.Data["index.html"] = "two" })
	if n := b.writes("patch deployments"); n != 1 {
		t.Errorf("%d writes of the Deployment", n)
	}
	b.reconcile()
	if hash() == one {
		t.Error("the content changed, the hash on the pods did not")
	}
	edit(b.cluster, site, &proxyv1alpha1.Nginx{}, func(n *proxyv1alpha1.Nginx) { n.Spec.ContentRef = nil })
	b.reconcile()
	template := get(b.cluster, site, &appsv1.Deployment{}).Spec.Template
	if template.Annotations[contentHash] != "" || len(template.Spec.Volumes) != len(writablePaths) {
		t.Errorf("no content is named any more, the pods have %v and %v", template.Annotations, template.Spec.Volumes)
	}
}

func TestMissingContentChangesNothing(t *testing.T) {
	b := newFixture(t, serving("page"))
	if n := b.reconcile(); n != 1 {
		t.Errorf("%d writes were sent, want the status alone", n)
	}
	if got := b.condition(site, owned.Degraded)(); got != "True ContentNotFound" {
		t.Errorf("Degraded is %s", got)
	}
	err := b.cluster.Get(t.Context(), client.ObjectKey{Namespace: b.namespace, Name: site}, &appsv1.Deployment{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("pods that could not start were asked for: %v", err)
	}
	page := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "page"}}
	b.must(b.cluster.Create(t.Context(), page))
	b.reconcile()
	set := b.set(site)
	b.pod(newPod(set, "site-1-a"), corev1.PodRunning)
	b.reconcile()
	b.must(b.cluster.Delete(t.Context(), page))
	edit(b.cluster, site, &proxyv1alpha1.Nginx{}, func(n *proxyv1alpha1.Nginx) { n.Spec.Image = "nginx:1.28" })
	before := get(b.cluster, site, &appsv1.Deployment{}).ResourceVersion
	result, err := b.reconcileLater()
	if err != nil || result.RequeueAfter != 0 {
		t.Errorf("it ended with %+v, %v; a watch reports the ConfigMap", result, err)
	}
	if get(b.cluster, site, &appsv1.Deployment{}).ResourceVersion != before {
		t.Error("the content is gone, and the Deployment was changed")
	}
	status := b.nginx(site).Status
	if diff := cmp.Diff([]string{"site-1-a"}, status.Nodes); diff != "" || status.ReadyReplicas != 3 {
		t.Errorf("the pods go on, status reports %+v", status)
	}
	if got := b.condition(site, owned.Available)(); got != "True Serving" {
		t.Errorf("Available is %s", got)
	}
	if diff := cmp.Diff([]string{"Warning ContentNotFound", "Normal Recovered", "Normal Complete",
		"Warning ContentNotFound"}, b.recorded()); diff != "" {
		t.Error("events:", diff)
	}
}

func TestADeletedNginxIsLeftToTheGarbageCollector(t *testing.T) {
	b := newFixture(t, func(n *proxyv1alpha1.Nginx) { n.Finalizers = []string{"example.com/held"} })
	b.reconcile()
	b.must(b.cluster.Delete(t.Context(), b.nginx(site)))
	b.must(b.cluster.Delete(t.Context(), get(b.cluster, site, &corev1.Service{})))
	if n := b.reconcile(); n != 0 {
		t.Errorf("%d writes for an Nginx that is being deleted", n)
	}
	edit(b.cluster, site, &proxyv1alpha1.Nginx{}, func(n *proxyv1alpha1.Nginx) { n.Finalizers = nil })
	if n := b.reconcile(); n != 0 {
		t.Errorf("%d writes for an Nginx that is gone", n)
	}
}
