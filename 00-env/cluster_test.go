package env_test

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"example.com/operator-workshop/00-env/internal/lookaround"
	"example.com/operator-workshop/00-env/internal/testenv"
)

// The tests named TestCluster… pass on every cluster, with simulated or real nodes.

var pinned = regexp.MustCompile(`k8s\.io/client-go v0\.(\d+)\.(\d+)`)

// libraryVersion returns the Kubernetes version that go.mod's k8s.io modules belong to: v0.37.1 was
// published with Kubernetes 1.37.1.
func libraryVersion(t *testing.T) (minor, full string) {
	t.Helper()
	mod, err := os.ReadFile("go.mod")
	testenv.Must(t, err)
	m := pinned.FindSubmatch(mod)
	if m == nil {
		t.Fatal("go.mod does not require k8s.io/client-go")
	}
	return fmt.Sprintf("v1.%s", m[1]), fmt.Sprintf("v1.%s.%s", m[1], m[2])
}

func TestClusterHasTheMinorVersionOfTheLibraries(t *testing.T) {
	g := NewWithT(t)
	minor, _ := libraryVersion(t)
	version, err := newClient(t, cluster(t)).Discovery().ServerVersion()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(version.GitVersion).To(HavePrefix(minor + "."))
}

func TestClusterNodesAreReady(t *testing.T) {
	g := NewWithT(t)
	facts, err := lookaround.Look(t.Context(), cluster(t))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(facts.Nodes).NotTo(BeEmpty())
	for _, n := range facts.Nodes {
		g.Expect(n.Status.Conditions).To(ContainElement(And(HaveField("Type", corev1.NodeReady),
			HaveField("Status", corev1.ConditionTrue))), "node %s is ready", n.Name)
		g.Expect(lookaround.KubeletOf(n)).NotTo(Equal(lookaround.KubeletAbsent), "a program reports for node %s", n.Name)
	}
}

func TestClusterRollsOutADeploymentAndItsChange(t *testing.T) {
	t.Parallel()
	g, c := NewWithT(t), newClient(t, cluster(t))
	ns := newNamespace(t, c)
	_, err := c.AppsV1().Deployments(ns).Create(t.Context(), newDeployment("web"), metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(rolledOut(t, c, ns, "web")).Should(Succeed())
	first := replicaSets(t, c, ns)
	g.Expect(first).To(HaveLen(1))
	for _, pod := range pods(t, c, ns) {
		g.Expect(pod.Spec.NodeName).NotTo(BeEmpty(), "the scheduler placed pod %s", pod.Name)
	}

	kind, patch := templateNote("changed")
	_, err = c.AppsV1().Deployments(ns).Patch(t.Context(), "web", kind, patch, metav1.PatchOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(rolledOut(t, c, ns, "web")).Should(Succeed())
	second := replicaSets(t, c, ns)
	g.Expect(second).To(HaveLen(2))
	for name, replicas := range second {
		if _, old := first[name]; old {
			g.Expect(replicas).To(BeZero(), "the ReplicaSet of the old template")
		} else {
			g.Expect(replicas).To(BeEquivalentTo(2), "the ReplicaSet of the new template")
		}
	}
}

func TestClusterCollectsGarbage(t *testing.T) {
	t.Parallel()
	g, c := NewWithT(t), newClient(t, cluster(t))
	ns := newNamespace(t, c)
	owner := create(t, c, ns, newConfigMap("owner"))
	create(t, c, ns, newConfigMap("dependent", owner))
	other := create(t, c, ns, newConfigMap("other-owner"))
	create(t, c, ns, newConfigMap("of-both", owner, other))
	_, err := c.AppsV1().Deployments(ns).Create(t.Context(), newDeployment("web"), metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(func() int { return len(pods(t, c, ns)) }).Should(Equal(2))

	g.Expect(c.CoreV1().ConfigMaps(ns).Delete(t.Context(), "owner", metav1.DeleteOptions{})).To(Succeed())
	g.Expect(c.AppsV1().Deployments(ns).Delete(t.Context(), "web", metav1.DeleteOptions{})).To(Succeed())
	g.Eventually(func(g Gomega) {
		g.Expect(configMaps(t, c, ns)).NotTo(HaveKey("dependent"))
		g.Expect(configMaps(t, c, ns)["of-both"]).To(HaveLen(1), "the owners of of-both")
		g.Expect(replicaSets(t, c, ns)).To(BeEmpty())
		g.Expect(pods(t, c, ns)).To(BeEmpty())
	}).Should(Succeed())
	g.Expect(configMaps(t, c, ns)).To(HaveKey("other-owner"))
}

func TestClusterDeletesANamespaceToTheEnd(t *testing.T) {
	t.Parallel()
	g, c := NewWithT(t), newClient(t, cluster(t))
	ns := newNamespace(t, c)
	create(t, c, ns, newConfigMap("settings"))
	_, err := c.AppsV1().Deployments(ns).Create(t.Context(), newDeployment("web"), metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(rolledOut(t, c, ns, "web")).Should(Succeed())

	g.Expect(c.CoreV1().Namespaces().Delete(t.Context(), ns, metav1.DeleteOptions{})).To(Succeed())
	g.Eventually(func() error {
		_, err := c.CoreV1().Namespaces().Get(t.Context(), ns, metav1.GetOptions{})
		return err
	}).Should(Satisfy(apierrors.IsNotFound))
	g.Expect(configMaps(t, c, ns)).To(BeEmpty())
	g.Expect(pods(t, c, ns)).To(BeEmpty())
}

func TestClusterHasADefaultStorageClass(t *testing.T) {
	g := NewWithT(t)
	classes, err := newClient(t, cluster(t)).StorageV1().StorageClasses().List(t.Context(), metav1.ListOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	var defaults []string
	for _, class := range classes.Items {
		if class.Annotations["storageclass.kubernetes.io/is-default-class"] == "true" {
			defaults = append(defaults, class.Name)
		}
	}
	g.Expect(defaults).To(HaveLen(1))
}

func TestClusterIsExplained(t *testing.T) {
	g := NewWithT(t)
	facts, err := lookaround.Look(t.Context(), cluster(t))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(facts.Controllers).To(BeTrue())
	g.Expect(facts.Groups).To(HaveKeyWithValue("apps", HaveLen(5)))
	var out bytes.Buffer
	g.Expect(lookaround.Print(&out, facts)).To(Succeed())
	for line := range strings.Lines(out.String()) {
		g.Expect(len([]rune(line))).To(BeNumerically("<=", 101), "with its line break: %s", line)
	}
}

// create creates the ConfigMap and returns it as stored.
func create(t *testing.T, c kubernetes.Interface, ns string, cm *corev1.ConfigMap) *corev1.ConfigMap {
	t.Helper()
	stored, err := c.CoreV1().ConfigMaps(ns).Create(t.Context(), cm, metav1.CreateOptions{})
	testenv.Must(t, err)
	return stored
}

// rolledOut returns a check that all replicas of the Deployment serve its current template.
func rolledOut(t *testing.T, c kubernetes.Interface, ns, name string) func() error {
	return func() error {
		d, err := c.AppsV1().Deployments(ns).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		want := appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: *d.Spec.Replicas,
			UpdatedReplicas: *d.Spec.Replicas, AvailableReplicas: *d.Spec.Replicas}
		got := appsv1.DeploymentStatus{ObservedGeneration: d.Status.ObservedGeneration, Replicas: d.Status.Replicas,
			UpdatedReplicas: d.Status.UpdatedReplicas, AvailableReplicas: d.Status.AvailableReplicas}
		if got.String() != want.String() {
			return fmt.Errorf("status of %s is %+v, want %+v", name, got, want)
		}
		return nil
	}
}

// replicaSets returns how many replicas each ReplicaSet of the namespace has.
func replicaSets(t *testing.T, c kubernetes.Interface, ns string) map[string]int32 {
	t.Helper()
	list, err := c.AppsV1().ReplicaSets(ns).List(t.Context(), metav1.ListOptions{})
	testenv.Must(t, err)
	result := map[string]int32{}
	for _, rs := range list.Items {
		result[rs.Name] = rs.Status.Replicas
	}
	return result
}

// pods returns the pods of the namespace.
func pods(t *testing.T, c kubernetes.Interface, ns string) []corev1.Pod {
	t.Helper()
	list, err := c.CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{})
	testenv.Must(t, err)
	return list.Items
}

// configMaps returns the owners of each ConfigMap of the namespace.
func configMaps(t *testing.T, c kubernetes.Interface, ns string) map[string][]metav1.OwnerReference {
	t.Helper()
	list, err := c.CoreV1().ConfigMaps(ns).List(t.Context(), metav1.ListOptions{})
	testenv.Must(t, err)
	result := map[string][]metav1.OwnerReference{}
	for _, cm := range list.Items {
		result[cm.Name] = cm.OwnerReferences
	}
	return result
}
