package test

import (
	"path/filepath"
	"testing"

	"github.com/onsi/gomega"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/helm-operator/internal/testenv"
)

// YAML would read the name as another value, and a template would change the page.
func TestAMyWebBecomesARelease(t *testing.T) {
	f := newFixture(t, config)
	const name, page = "null", "{{ .Values.image }} \"two\" & <b>Grüße, 世界 🌍</b>\r\n\ttrue\n\n"
	web := f.newMyWeb(name, map[string]any{"image": "nginx:1.29-alpine", "pageContentHtml": page})
	f.Eventually(f.condition(web, "Deployed")).Should(gomega.HavePrefix("True InstallSuccessful: "))
	for _, child := range []client.Object{&corev1.ConfigMap{}, &appsv1.Deployment{}, &corev1.Service{}} {
		child, err := get(f, child, name)
		f.Expect(err).NotTo(gomega.HaveOccurred())
		f.Expect(metav1.IsControlledBy(child, web)).To(gomega.BeTrue(), "%T", child)
	}
	stored, err := get(f, &corev1.ConfigMap{}, name)
	f.Expect(err).NotTo(gomega.HaveOccurred())
	f.Expect(stored.Data).To(gomega.Equal(map[string]string{"index.html": page}))
	deployment, err := get(f, &appsv1.Deployment{}, name)
	f.Expect(err).NotTo(gomega.HaveOccurred())
	f.Expect(deployment.Spec.Selector.MatchLabels).To(gomega.Equal(map[string]string{
		"app.kubernetes.io/name": "myweb", "app.kubernetes.io/instance": name}))
	service, err := get(f, &corev1.Service{}, name)
	f.Expect(err).NotTo(gomega.HaveOccurred())
	f.Expect(service.Spec.Ports[0].NodePort).To(gomega.BeNumerically(">=", 30000))
}

func TestAConfigMapOfSomebodyElseStays(t *testing.T) {
	f := newFixture(t, config)
	theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "taken"},
		Data: map[string]string{"theirs": "yes"}}
	f.Expect(f.Create(t.Context(), theirs)).To(gomega.Succeed())
	web := f.newMyWeb("taken", map[string]any{"image": "nginx"})
	f.Eventually(f.condition(web, "ReleaseFailed")).Should(gomega.And(gomega.HavePrefix("True InstallError: "),
		gomega.ContainSubstring(`ConfigMap "taken"`)))
	now, err := get(f, &corev1.ConfigMap{}, "taken")
	f.Expect(err).NotTo(gomega.HaveOccurred())
	f.Expect(now.ResourceVersion).To(gomega.Equal(theirs.ResourceVersion))

	f.Expect(f.Delete(t.Context(), now)).To(gomega.Succeed())
	f.Eventually(f.condition(web, "Deployed"), "60s").Should(gomega.HavePrefix("True"))
}

// This is why config/crd changes the CRD of the contract: with that CRD a MyWeb has no status and cannot be deleted.
func TestTheStatusOfTheContractIsRefused(t *testing.T) {
	contract := filepath.Join("..", "config", "crd", "contract", "operator.k8s-summit.org_mywebs.yaml")
	f := newFixture(t, testenv.NewAPIServer(t, contract))
	web := f.newMyWeb("refused", map[string]any{"image": "nginx"})
	f.Eventually(f.logged).WithArguments("Release installed").Should(gomega.BeTrue())
	f.Eventually(f.logged).WithArguments(`status.conditions\[\d\].reason: Required value`).Should(gomega.BeTrue())
	f.Expect(f.condition(web, "Deployed")()).To(gomega.BeEmpty())
}
