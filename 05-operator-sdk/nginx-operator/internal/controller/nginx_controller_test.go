package controller

import (
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	proxyv1alpha1 "github.com/example/nginx-operator/api/v1alpha1"
)

var _ = Describe("Nginx Controller", Ordered, func() {
	sample := &proxyv1alpha1.Nginx{}

	read := func(obj client.Object) error {
		return k8sClient.Get(ctx, client.ObjectKeyFromObject(sample), obj)
	}
	count := func() int32 {
		deployment := &appsv1.Deployment{}
		if read(deployment) != nil {
			return -1
		}
		return *deployment.Spec.Replicas
	}

	BeforeAll(func() {
		data, err := os.ReadFile(filepath.Join("..", "..", "config", "samples", "proxy_v1alpha1_nginx.yaml"))
		Expect(err).NotTo(HaveOccurred())
		Expect(yaml.UnmarshalStrict(data, sample)).To(Succeed())
		sample.Namespace = namespace
		Expect(k8sClient.Create(ctx, sample)).To(Succeed())
	})

	It("makes a Deployment and a Service that belong to the Nginx", func() {
		Eventually(count, "10s").Should(Equal(int32(3)))
		for _, child := range []client.Object{&appsv1.Deployment{}, &corev1.Service{}} {
			Eventually(read, "10s").WithArguments(child).Should(Succeed())
			Expect(metav1.IsControlledBy(child, sample)).To(BeTrue())
		}
	})

	It("follows the count", func() {
		scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 2}}
		Expect(k8sClient.SubResource("scale").Update(ctx, sample, client.WithSubResourceBody(scale))).To(Succeed())
		Eventually(count, "10s").Should(Equal(int32(2)))
	})

	It("brings a deleted child back", func() {
		deployment := &appsv1.Deployment{}
		Expect(read(deployment)).To(Succeed())
		Expect(k8sClient.Delete(ctx, deployment)).To(Succeed())
		Eventually(count, "10s").Should(Equal(int32(2)))
	})

	It("reports the names of the pods that run", func() {
		deployment := &appsv1.Deployment{}
		Expect(read(deployment)).To(Succeed())
		set := newSet(deployment, "nginx-sample-1")
		Expect(k8sClient.Create(ctx, set)).To(Succeed())
		for _, name := range []string{"nginx-sample-1-b", "nginx-sample-1-a"} {
			pod := newPod(set, name)
			Expect(k8sClient.Create(ctx, pod)).To(Succeed())
			pod.Status.Phase = corev1.PodRunning
			Expect(k8sClient.Status().Update(ctx, pod)).To(Succeed())
		}
		Eventually(func() []string {
			nginx := &proxyv1alpha1.Nginx{}
			Expect(read(nginx)).To(Succeed())
			return nginx.Status.Nodes
		}, "10s").Should(Equal([]string{"nginx-sample-1-a", "nginx-sample-1-b"}))
	})
})
