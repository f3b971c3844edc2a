package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/onsi/gomega"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	proxyv1alpha1 "github.com/example/nginx-operator/api/v1alpha1"
	"github.com/example/nginx-operator/internal/owned"
	"github.com/example/nginx-operator/internal/testenv"
	"github.com/example/nginx-operator/test/programtest"
)

// This test runs the program as a separate process, against a local cluster, whose controllers roll Deployments out and
// scale. The operator is a user with the permissions of config/rbac/role.yaml. The test is skipped in a copy of this
// project outside the workshop.

// TestMain makes the test binary the program itself when the test starts it again.
func TestMain(m *testing.M) {
	if os.Getenv("IS_PROGRAM") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// A fixture is a local cluster, with a client of its administrator.
type fixture struct {
	*gomega.WithT
	client.Client
	t     *testing.T
	local *testenv.Local
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	ctrl.SetLogger(logr.Discard())
	local, err := testenv.StartLocal(filepath.Join("..", "config", "crd", "bases", "proxy.example.com_nginxes.yaml"))
	if errors.Is(err, testenv.ErrNoRepository) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	w := &fixture{WithT: gomega.NewWithT(t), t: t, local: local}
	t.Cleanup(func() { w.must(local.Stop()) })
	w.SetDefaultEventuallyTimeout(60 * time.Second)
	w.SetDefaultEventuallyPollingInterval(20 * time.Millisecond)
	w.Client, err = client.New(local.Config, client.Options{Scheme: scheme})
	w.must(err)
	return w
}

func (w *fixture) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// launch starts the operator as a user with exactly the shipped permissions.
func (w *fixture) launch(user string) *programtest.Process {
	w.t.Helper()
	role := testenv.ReadManifest[rbacv1.ClusterRole](w.t, "..", "config", "rbac/role.yaml")
	name := metav1.ObjectMeta{Name: user}
	role.ObjectMeta = name
	w.must(w.Create(w.t.Context(), role))
	w.must(w.Create(w.t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: name,
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user}}))
	cfg := rest.CopyConfig(w.local.Config)
	cfg.Impersonate.UserName = user
	w.t.Setenv("IS_PROGRAM", "yes")
	return programtest.Start(w.t, os.Args[0], "--kubeconfig="+testenv.WriteKubeconfig(w.t, cfg, ""),
		"--health-probe-bind-address=0")
}

func (w *fixture) nginx(name string) *proxyv1alpha1.Nginx {
	w.t.Helper()
	nginx := &proxyv1alpha1.Nginx{}
	w.must(w.Get(w.t.Context(), client.ObjectKey{Namespace: "default", Name: name}, nginx))
	return nginx
}

// running returns the names of the running pods with the labels of an Nginx, sorted.
func (w *fixture) running(name string) (names []string) {
	w.t.Helper()
	for _, pod := range w.pods(name) {
		if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp.IsZero() {
			names = append(names, pod.Name)
		}
	}
	slices.Sort(names)
	return names
}

func (w *fixture) pods(name string) []corev1.Pod {
	w.t.Helper()
	pods := &corev1.PodList{}
	w.must(w.List(w.t.Context(), pods, client.InNamespace("default"),
		client.MatchingLabels{"app.kubernetes.io/instance": name}))
	return pods.Items
}

// lists waits until status.nodes are n running pods.
func (w *fixture) lists(name string, n int) {
	w.t.Helper()
	w.Eventually(func() bool {
		nodes := w.nginx(name).Status.Nodes
		return len(nodes) == n && slices.Equal(nodes, w.running(name))
	}).Should(gomega.BeTrue(), "status.nodes are the %d running pods", n)
}

func (w *fixture) complete(name string) {
	w.t.Helper()
	w.Eventually(func() bool {
		nginx := w.nginx(name)
		c := meta.FindStatusCondition(nginx.Status.Conditions, owned.Progressing)
		return c != nil && c.Reason == owned.ReasonComplete && nginx.Status.ObservedGeneration == nginx.Generation
	}).Should(gomega.BeTrue(), "Nginx %s is complete", name)
}

// A HorizontalPodAutoscaler writes through the scale subresource. This cluster has no metrics; the autoscaler
// writes to keep the count between minReplicas and maxReplicas, for which it needs none.
func TestAnAutoscalerIsNotFought(t *testing.T) {
	w := newFixture(t)
	t.Setenv("NGINX_IMAGE", "registry.example:5000/nginx")
	p := w.launch("scaler")
	p.EventuallyPrints("Starting workers", "30s")
	w.must(w.Create(t.Context(), &proxyv1alpha1.Nginx{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "scaled"}, Spec: proxyv1alpha1.NginxSpec{Count: 1}}))
	w.lists("scaled", 1)
	w.complete("scaled")
	w.Expect(w.pods("scaled")[0].Spec.Containers[0].Image).To(gomega.Equal("registry.example:5000/nginx"),
		"the image of NGINX_IMAGE")
	hpa := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "scaled"},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{MinReplicas: new(int32(3)), MaxReplicas: 4,
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "proxy.example.com/v1alpha1",
				Kind: "Nginx", Name: "scaled"}}}
	w.must(w.Create(t.Context(), hpa))
	w.lists("scaled", 3)
	w.complete("scaled")
	w.Expect(w.nginx("scaled").Spec.Count).To(gomega.Equal(int32(3)), "the autoscaler wrote the count")
	writers := map[string]bool{}
	for _, f := range w.nginx("scaled").ManagedFields {
		writers[f.Manager+" "+f.Subresource] = true
	}
	w.Expect(writers).To(gomega.HaveKey("kube-controller-manager scale"))
	w.Expect(writers).NotTo(gomega.HaveKey("nginx-operator "), "the operator writes no spec")
	// One write creates the Deployment, one scales it.
	w.Consistently(func() int64 {
		d := &appsv1.Deployment{}
		w.must(w.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "scaled"}, d))
		return d.Generation
	}, "3s", "200ms").Should(gomega.Equal(int64(2)))
	p.Terminate()
}
