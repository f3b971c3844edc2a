package test

import (
	"path/filepath"
	"testing"

	"github.com/onsi/gomega"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/helm-operator/internal/testenv"
)

const hash = "checksum/page"

func TestAMyWebBecomesARelease(t *testing.T) {
	f := newFixture(t, config)
	web := f.newMyWeb("null", map[string]any{"image": "nginx:1.29-alpine"}) // YAML would read this name as a value
	f.Eventually(f.condition(web, "Deployed")).Should(gomega.HavePrefix("True InstallSuccessful: "))
	f.Expect(f.releases("null")()).To(gomega.ConsistOf("sh.helm.release.v1.null.v1"))
	for _, child := range children("null") {
		child, err := get(f, child, "null")
		f.Expect(err).NotTo(gomega.HaveOccurred())
		f.Expect(metav1.IsControlledBy(child, web)).To(gomega.BeTrue(), "%T", child)
	}
	deployment, err := get(f, &appsv1.Deployment{}, "null")
	f.Expect(err).NotTo(gomega.HaveOccurred())
	f.Expect(deployment.Spec.Selector.MatchLabels).To(gomega.Equal(map[string]string{
		"app.kubernetes.io/name": "myweb", "app.kubernetes.io/instance": "null"}))
	service, err := get(f, &corev1.Service{}, "null")
	f.Expect(err).NotTo(gomega.HaveOccurred())
	f.Expect(service.Spec.Ports[0].NodePort).To(gomega.BeNumerically(">=", 30000))
}

func TestAChangedPageRolls(t *testing.T) {
	f := newFixture(t, config)
	web := f.newMyWeb("page", map[string]any{"image": "nginx", "pageContentHtml": "one"})
	f.Eventually(f.condition(web, "Deployed")).Should(gomega.HavePrefix("True"))
	before, err := get(f, &appsv1.Deployment{}, "page")
	f.Expect(err).NotTo(gomega.HaveOccurred())

	const page = "{{ .Values.image }} \"two\" & <b>Grüße, 世界 🌍</b>\r\n\ttrue\n\n"
	f.change(web, map[string]any{"pageContentHtml": page})
	f.Eventually(f.condition(web, "Deployed")).Should(gomega.HavePrefix("True UpgradeSuccessful: "))
	after, err := get(f, &appsv1.Deployment{}, "page")
	f.Expect(err).NotTo(gomega.HaveOccurred())
	f.Expect(after.UID).To(gomega.Equal(before.UID))
	f.Expect(after.Spec.Template.Annotations[hash]).NotTo(gomega.Equal(before.Spec.Template.Annotations[hash]))
	stored, err := get(f, &corev1.ConfigMap{}, "page")
	f.Expect(err).NotTo(gomega.HaveOccurred())
	f.Expect(stored.Data).To(gomega.Equal(map[string]string{"index.html": page}))
	f.Expect(f.releases("page")()).To(gomega.ConsistOf("sh.helm.release.v1.page.v1", "sh.helm.release.v1.page.v2"))
}

// No garbage collector runs here, so an object that is gone was uninstalled.
func TestDeletionUninstalls(t *testing.T) {
	f := newFixture(t, config)
	web := f.newMyWeb("gone", map[string]any{"image": "nginx"})
	f.Eventually(f.condition(web, "Deployed")).Should(gomega.HavePrefix("True"))
	f.Expect(f.Delete(t.Context(), web)).To(gomega.Succeed())
	f.Eventually(func() error { _, err := get(f, web, "gone"); return err }).Should(
		gomega.Satisfy(apierrors.IsNotFound))
	for _, child := range children("gone") {
		_, err := get(f, child, "gone")
		f.Expect(err).To(gomega.Satisfy(apierrors.IsNotFound), "%T", child)
	}
	f.Expect(f.releases("gone")()).To(gomega.BeEmpty())
}

// The reconcile period of the tests is an hour: only a watch can notice. See watches.yaml.
func TestChildrenAreWatched(t *testing.T) {
	f := newFixture(t, config)
	web := f.newMyWeb("drift", map[string]any{"image": "nginx"})
	f.Eventually(f.condition(web, "ReleaseFailed")).Should(gomega.HavePrefix("False"))
	was, err := get(f, &corev1.ConfigMap{}, "drift")
	f.Expect(err).NotTo(gomega.HaveOccurred())
	f.Expect(f.Delete(t.Context(), was)).To(gomega.Succeed())
	f.Eventually(func() (types.UID, error) {
		now, err := get(f, &corev1.ConfigMap{}, "drift")
		return now.UID, client.IgnoreNotFound(err)
	}).ShouldNot(gomega.Or(gomega.BeEmpty(), gomega.Equal(was.UID)))

	deployment, err := get(f, &appsv1.Deployment{}, "drift")
	f.Expect(err).NotTo(gomega.HaveOccurred())
	edited := deployment.DeepCopy()
	edited.Spec.Template.Spec.Containers[0].Image = "edited"
	f.Expect(f.Patch(t.Context(), edited, client.MergeFrom(deployment))).To(gomega.Succeed())
	f.Eventually(func() (string, error) {
		now, err := get(f, &appsv1.Deployment{}, "drift")
		return now.Spec.Template.Spec.Containers[0].Image, err
	}).Should(gomega.Equal("nginx"))
}

func TestARefusedValueIsReported(t *testing.T) {
	f := newFixture(t, config)
	first := f.newMyWeb("first", map[string]any{"image": "nginx", "nodePortNumber": int64(30333)})
	f.Eventually(f.condition(first, "Deployed")).Should(gomega.HavePrefix("True"))
	second := f.newMyWeb("second", map[string]any{"image": "nginx", "nodePortNumber": int64(30333)})
	f.Eventually(f.condition(second, "ReleaseFailed")).Should(gomega.And(gomega.HavePrefix("True InstallError: "),
		gomega.ContainSubstring("provided port is already allocated")))

	f.Expect(f.Delete(t.Context(), first)).To(gomega.Succeed())
	f.Eventually(f.condition(second, "Deployed"), "60s").Should(gomega.HavePrefix("True"))
	f.Eventually(f.condition(second, "ReleaseFailed")).Should(gomega.HavePrefix("False"))
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
