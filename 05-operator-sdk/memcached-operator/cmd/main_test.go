package main

import (
	"testing"
	"time"

	"github.com/onsi/gomega"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1alpha1 "github.com/example/memcached-operator/api/v1alpha1"
)

const (
	name          = "memcached-operator"
	kind          = "Memcached"
	imageVariable = "MEMCACHED_IMAGE"
)

// served waits until the named Memcached has a Deployment, and returns the Deployment.
func (f *fixture) served(name string) *appsv1.Deployment {
	f.t.Helper()
	d := &appsv1.Deployment{}
	f.Eventually(func() error {
		return f.Get(f.t.Context(), client.ObjectKey{Namespace: f.namespace, Name: name}, d)
	}).Should(gomega.Succeed())
	return d
}

func (f *fixture) ask(name string) {
	f.t.Helper()
	f.create(&cachev1alpha1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: name}})
}

func TestItServesAndEndsInTime(t *testing.T) {
	f := newFixture(t)
	p := launch(t, "--kubeconfig="+f.operator(), "WATCH_NAMESPACE="+f.namespace,
		"MEMCACHED_IMAGE=registry:5000/memcached:1.6")
	f.ask("site")
	if image := f.served("site").Spec.Template.Spec.Containers[0].Image; image != "registry:5000/memcached:1.6" {
		t.Errorf("the image is %s", image)
	}
	t.Logf("gone %s after SIGTERM", p.Stop().Round(time.Millisecond))
}
