package env_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/operator-workshop/00-env/internal/lookaround"
)

// quiet is how long a test checks that nothing happens. On a cluster with controllers, where the tests named
// TestCluster… take the same steps, the first effects appear within a tenth of this time.
const quiet = 2 * time.Second

// The tests named TestEnvtest… show which effects an API server alone does not have.

func TestEnvtestHasNeitherNodesNorControllers(t *testing.T) {
	g := NewWithT(t)
	facts, err := lookaround.Look(t.Context(), envtest(t))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(facts.Nodes).To(BeEmpty())
	g.Expect(facts.Controllers).To(BeFalse())
	g.Expect(facts.Environment()).To(Equal(lookaround.EnvironmentEnvtest))
}

func TestEnvtestServesTheSameKindsAsACluster(t *testing.T) {
	g := NewWithT(t)
	alone, err := lookaround.Look(t.Context(), envtest(t))
	g.Expect(err).NotTo(HaveOccurred())
	whole, err := lookaround.Look(t.Context(), local(t).Config)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(alone.Groups).To(Equal(whole.Groups))
}

func TestEnvtestOnlyStores(t *testing.T) {
	g, c := NewWithT(t), newClient(t, envtest(t))
	ns := newNamespace(t, c)
	ctx := t.Context()
	_, err := c.AppsV1().Deployments(ns).Create(ctx, newDeployment("web"), metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "lonely"}, Spec: newJob("").Spec.Template.Spec}
	_, err = c.CoreV1().Pods(ns).Create(ctx, pod, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	owner := create(t, c, ns, newConfigMap("owner"))
	create(t, c, ns, newConfigMap("dependent", owner))
	g.Expect(c.CoreV1().ConfigMaps(ns).Delete(ctx, "owner", metav1.DeleteOptions{})).To(Succeed())
	leaving := newNamespace(t, c)
	g.Expect(c.CoreV1().Namespaces().Delete(ctx, leaving, metav1.DeleteOptions{})).To(Succeed())

	g.Consistently(func(g Gomega) {
		d, err := c.AppsV1().Deployments(ns).Get(ctx, "web", metav1.GetOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(d.Status.ObservedGeneration).To(BeZero(), "no controller has seen the Deployment")
		g.Expect(d.ManagedFields).To(HaveLen(1), "only its creator has written the Deployment")
		g.Expect(replicaSets(t, c, ns)).To(BeEmpty())

		pod, err := c.CoreV1().Pods(ns).Get(ctx, "lonely", metav1.GetOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(pod.Spec.NodeName).To(BeEmpty(), "no scheduler has placed the pod")
		g.Expect(pod.Status.Phase).To(Equal(corev1.PodPending))

		g.Expect(configMaps(t, c, ns)).To(HaveKey("dependent"), "no controller collects garbage")

		n, err := c.CoreV1().Namespaces().Get(ctx, leaving, metav1.GetOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(n.Status.Phase).To(Equal(corev1.NamespaceTerminating), "no controller empties the namespace")
	}).WithTimeout(quiet).WithPolling(100 * time.Millisecond).Should(Succeed())
}
