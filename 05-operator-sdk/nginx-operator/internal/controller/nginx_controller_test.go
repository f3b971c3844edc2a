package controller

import (
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	proxyv1alpha1 "github.com/example/nginx-operator/api/v1alpha1"
)

var _ = Describe("Nginx Controller", Ordered, func() {
	sample := &proxyv1alpha1.Nginx{}

	BeforeAll(func() {
		data, err := os.ReadFile(filepath.Join("..", "..", "config", "samples", "proxy_v1alpha1_nginx.yaml"))
		Expect(err).NotTo(HaveOccurred())
		Expect(yaml.UnmarshalStrict(data, sample)).To(Succeed())
		sample.Namespace = namespace
		Expect(k8sClient.Create(ctx, sample)).To(Succeed())
	})

	It("makes a Deployment and a Service that belong to the Nginx", func() {
		for _, child := range []client.Object{&appsv1.Deployment{}, &corev1.Service{}} {
			Eventually(k8sClient.Get, "10s").WithArguments(ctx, client.ObjectKeyFromObject(sample), child).Should(Succeed())
			Expect(metav1.IsControlledBy(child, sample)).To(BeTrue())
		}
	})
})
