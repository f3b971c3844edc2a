package main

import (
	"context"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/onsi/gomega"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
	"example.com/operator-workshop/04-controller-runtime/internal/testenv"
)

// A counter counts the calls of Reconcile by name. It reads them from the log of controller-runtime.
type counter struct {
	mu    sync.Mutex
	calls map[string]int
}

var reconciling = regexp.MustCompile(`"msg"="Reconciling".* "name"="([^"]+)"`)

func (c *counter) read(_, line string) {
	if match := reconciling.FindStringSubmatch(line); match != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.calls[match[1]]++
	}
}

func (c *counter) of(name string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls[name]
}

// TestAnUnrelatedServiceTriggersNothing: Owns enqueues the owner of a Service. For a Service without an owner it
// enqueues nothing. The events of a kind arrive in order over one watch. So when the operator recreates a child of the
// MyWeb "last", it has handled all earlier events of this kind.
func TestAnUnrelatedServiceTriggersNothing(t *testing.T) {
	g := gomega.NewWithT(t)
	g.SetDefaultEventuallyTimeout(30 * time.Second)
	reconciles := &counter{calls: map[string]int{}}
	ctrl.SetLogger(funcr.New(reconciles.read, funcr.Options{Verbosity: 5}))
	cfg := testenv.NewAPIServer(t, "../../config/crd")
	t.Setenv("KUBECONFIG", testenv.WriteKubeconfig(t, cfg, "default"))
	g.Expect(webv1.AddToScheme(scheme.Scheme)).To(gomega.Succeed())
	c, err := client.New(cfg, client.Options{})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	testenv.Run(t, run)

	for _, name := range []string{"web", "last"} {
		web := &webv1.MyWeb{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}}
		web.Spec.Image = "nginx"
		g.Expect(c.Create(t.Context(), web)).To(gomega.Succeed())
	}
	for _, child := range []client.Object{&corev1.ConfigMap{}, &appsv1.Deployment{}, &corev1.Service{}} {
		comesBack(t.Context(), g, c, "web", child)
		comesBack(t.Context(), g, c, "last", child)
	}
	before := reconciles.of("web")
	g.Expect(before).To(gomega.BeNumerically(">", 0), "the log has no line of a reconcile")

	unrelated := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "unrelated", Namespace: "default"}}
	unrelated.Spec.Ports = []corev1.ServicePort{{Port: 80}}
	g.Expect(c.Create(t.Context(), unrelated)).To(gomega.Succeed())
	unrelated.Spec.Ports[0].Port = 81
	g.Expect(c.Update(t.Context(), unrelated)).To(gomega.Succeed())
	g.Expect(c.Delete(t.Context(), unrelated)).To(gomega.Succeed())
	comesBack(t.Context(), g, c, "last", &corev1.Service{})
	n := reconciles.of("unrelated") + reconciles.of("web") - before
	t.Logf("an unrelated Service was created, changed and deleted: %d reconciles", n)
	g.Expect(n).To(gomega.BeZero())

	comesBack(t.Context(), g, c, "web", &corev1.Service{})
	g.Expect(reconciles.of("web")).To(gomega.BeNumerically(">", before))
	t.Log("the Service of a MyWeb was deleted: the MyWeb was reconciled, and the Service is back")
}

// comesBack waits for a child of a MyWeb, deletes it, and waits until the operator has created it again.
func comesBack(ctx context.Context, g *gomega.WithT, c client.Client, name string, child client.Object) {
	key := client.ObjectKey{Namespace: "default", Name: name}
	g.Eventually(func() error { return c.Get(ctx, key, child) }).Should(gomega.Succeed())
	deleted := child.GetUID()
	g.Expect(c.Delete(ctx, child)).To(gomega.Succeed())
	g.Eventually(func(g gomega.Gomega) {
		g.Expect(c.Get(ctx, key, child)).To(gomega.Succeed())
		g.Expect(child.GetUID()).NotTo(gomega.Equal(deleted))
	}).Should(gomega.Succeed())
}
