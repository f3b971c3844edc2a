package controller

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onsi/gomega"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	proxyv1alpha1 "github.com/example/nginx-operator/api/v1alpha1"
	"github.com/example/nginx-operator/internal/owned"
	"github.com/example/nginx-operator/internal/program"
	"github.com/example/nginx-operator/internal/testenv"
)

// newManager returns a manager like that of internal/program, without metrics and probes.
func newManager(cfg *rest.Config, namespaces ...string) (ctrl.Manager, error) {
	return ctrl.NewManager(cfg, ctrl.Options{
		Client:     client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: new(true)}},
		Cache:      program.CacheOptions(namespaces, Trim),
		Metrics:    server.Options{BindAddress: "0"},
		Controller: ctrlconfig.Controller{SkipNameValidation: new(true)},
	})
}

// A cluster is a client of the administrator, with a new namespace.
type cluster struct {
	*gomega.WithT
	client.WithWatch
	t         *testing.T
	namespace string
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{WithT: gomega.NewWithT(t), t: t}
	c.SetDefaultEventuallyTimeout(20 * time.Second)
	c.SetDefaultEventuallyPollingInterval(20 * time.Millisecond)
	c.SetDefaultConsistentlyDuration(1500 * time.Millisecond)
	c.SetDefaultConsistentlyPollingInterval(50 * time.Millisecond)
	var err error
	c.WithWatch, err = client.NewWithWatch(config, client.Options{})
	c.Expect(err).NotTo(gomega.HaveOccurred())
	c.namespace = c.newNamespace()
	return c
}

func (c *cluster) newNamespace() string {
	c.t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "nginx-"}}
	c.must(c.Create(c.t.Context(), namespace))
	return namespace.Name
}

func (c *cluster) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// ask creates an Nginx in the test's namespace: the original sample, changed.
func (c *cluster) ask(name string, change ...func(*proxyv1alpha1.Nginx)) *proxyv1alpha1.Nginx {
	c.t.Helper()
	nginx := testenv.ReadManifest[proxyv1alpha1.Nginx](c.t, "..", "..", "config", "samples", "proxy_v1alpha1_nginx.yaml")
	nginx.Namespace, nginx.Name = c.namespace, name
	for _, f := range change {
		f(nginx)
	}
	c.must(c.Create(c.t.Context(), nginx))
	return nginx
}

// get reads an object by its name in the test's namespace.
func get[T client.Object](c *cluster, name string, obj T) T {
	c.t.Helper()
	c.must(c.Get(context.WithoutCancel(c.t.Context()), client.ObjectKey{Namespace: c.namespace, Name: name}, obj))
	return obj
}

// edit changes an object as another client would.
func edit[T client.Object](c *cluster, name string, obj T, change func(T)) {
	c.t.Helper()
	c.Eventually(func() error {
		get(c, name, obj)
		change(obj)
		return c.Update(c.t.Context(), obj)
	}).Should(gomega.Succeed())
}

func (c *cluster) nginx(name string) *proxyv1alpha1.Nginx {
	c.t.Helper()
	return get(c, name, &proxyv1alpha1.Nginx{})
}

// listed returns a function that reads status.nodes of an Nginx.
func (c *cluster) listed(name string) func() []string {
	return func() []string { return c.nginx(name).Status.Nodes }
}

// condition returns a function that returns the "status reason" of a condition of an Nginx.
func (c *cluster) condition(name, kind string) func() string {
	return func() string {
		if found := meta.FindStatusCondition(c.nginx(name).Status.Conditions, kind); found != nil {
			return string(found.Status) + " " + found.Reason
		}
		return "none"
	}
}

// deployed plays the Deployment controller, which envtest lacks: it reports that all desired pods are ready.
func (c *cluster) deployed(name string) *appsv1.Deployment {
	c.t.Helper()
	d := &appsv1.Deployment{}
	c.Eventually(func() error {
		if err := c.Get(c.t.Context(), client.ObjectKey{Namespace: c.namespace, Name: name}, d); err != nil {
			return err
		}
		n := *d.Spec.Replicas
		d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n,
			ReadyReplicas: n, AvailableReplicas: n}
		return c.Status().Update(c.t.Context(), d)
	}).Should(gomega.Succeed())
	return d
}

// newSet returns a ReplicaSet of a Deployment, as the Deployment controller would create it.
func newSet(d *appsv1.Deployment, name string) *appsv1.ReplicaSet {
	template := d.Spec.Template.DeepCopy()
	template.Labels["pod-template-hash"] = name
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: name, Labels: template.Labels,
			OwnerReferences: []metav1.OwnerReference{
				*metav1.NewControllerRef(d, appsv1.SchemeGroupVersion.WithKind("Deployment"))}},
		Spec: appsv1.ReplicaSetSpec{Replicas: new(int32(0)), Template: *template,
			Selector: &metav1.LabelSelector{MatchLabels: template.Labels}},
	}
}

// newPod returns a pod of a ReplicaSet, as the ReplicaSet controller would create it.
func newPod(set *appsv1.ReplicaSet, name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: set.Namespace, Name: name, Labels: set.Spec.Template.Labels,
			OwnerReferences: []metav1.OwnerReference{
				*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))}},
		Spec: set.Spec.Template.Spec,
	}
}

// set waits for the Deployment of an Nginx, and creates a ReplicaSet of it.
func (c *cluster) set(nginx string) *appsv1.ReplicaSet {
	c.t.Helper()
	set := newSet(c.deployed(nginx), nginx+"-1")
	c.must(c.Create(c.t.Context(), set))
	return set
}

// pod creates a pod, and sets its phase.
func (c *cluster) pod(pod *corev1.Pod, phase corev1.PodPhase) *corev1.Pod {
	c.t.Helper()
	c.must(c.Create(c.t.Context(), pod))
	c.phase(pod, phase)
	return pod
}

func (c *cluster) phase(pod *corev1.Pod, phase corev1.PodPhase) {
	c.t.Helper()
	pod.Status.Phase = phase
	c.must(c.Status().Update(c.t.Context(), pod))
}

// A loop is a manager that serves the Nginxes of the test's namespace and of others, behind a wire.
type loop struct {
	*cluster
	*wire
	user       string // the operator's user, the administrator when empty
	namespaces []string
	reconciles atomic.Int32
	stop       func() // ends the manager and waits for it
}

func newLoop(t *testing.T) *loop {
	t.Helper()
	c := newCluster(t)
	return &loop{cluster: c, wire: &wire{}, namespaces: []string{c.namespace}, stop: func() {}}
}

// start runs the manager until the test ends, or stop.
func (l *loop) start() *loop {
	l.t.Helper()
	cfg := rest.CopyConfig(config)
	cfg.Impersonate.UserName = l.user
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { l.next = next; return l.wire })
	mgr, err := newManager(cfg, l.namespaces...)
	l.must(err)
	l.must(addController(mgr, &l.reconciles, l.namespaces...))
	l.stop = testenv.Run(l.t, mgr.Start)
	return l
}

// addController adds the reconciler to a manager, as the program does, and counts its calls.
func addController(mgr ctrl.Manager, reconciles *atomic.Int32, namespaces ...string) error {
	pods, err := NewPodCache(mgr, namespaces)
	if err != nil {
		return err
	}
	recorder := mgr.GetEventRecorder("nginx-operator")
	nginxes := newReconciler(mgr.GetClient(), pods, recorder, clock.RealClock{})
	counted := reconcile.Func(func(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
		reconciles.Add(1)
		return nginxes.Reconcile(ctx, req)
	})
	return SetupWithManager(mgr, pods, counted, controller.Options{MaxConcurrentReconciles: 2})
}

// newReconciler returns the reconciler, as in the program.
func newReconciler(c client.Client, pods client.Reader, recorder events.EventRecorder,
	now clock.PassiveClock) reconcile.Reconciler {
	return reconcile.AsReconciler(c, &NginxReconciler{Client: c, Pods: pods,
		Applier: owned.ServerSideApply{Client: c, FieldOwner: FieldOwner},
		Events:  recorder, Now: now.Now, Pace: NewStatusPace(), Image: DefaultImage})
}

// quiet waits until the operator has sent no request for longer than the maximum delay of a status.
func (l *loop) quiet() {
	l.t.Helper()
	n, since := 0, time.Now()
	l.Eventually(func() time.Duration {
		sum := 0
		for _, count := range l.requests() {
			sum += count
		}
		if sum != n {
			n, since = sum, time.Now()
		}
		return time.Since(since)
	}, "30s").Should(gomega.BeNumerically(">", 2500*time.Millisecond), "the operator comes to rest")
}

// A fixture is a cluster with one Nginx, called site, and a reconciler that is called by hand, with a client
// that reads from the API server directly: no cache is outdated, so a test can check each step at once. Time
// passes only between reconciles.
type fixture struct {
	*cluster
	*wire
	reconciler reconcile.Reconciler
	clock      *clocktesting.FakePassiveClock
	events     chan string
}

const site = "site"

func newFixture(t *testing.T, change ...func(*proxyv1alpha1.Nginx)) *fixture {
	t.Helper()
	b := &fixture{cluster: newCluster(t), wire: &wire{}, clock: clocktesting.NewFakePassiveClock(time.Now())}
	cfg := rest.CopyConfig(config)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { b.next = next; return b.wire })
	c, err := client.NewWithWatch(cfg, client.Options{})
	b.must(err)
	recorder := events.NewFakeRecorder(100)
	b.events = recorder.Events
	trimmed := interceptor.NewClient(c, interceptor.Funcs{Get: getTrimmed})
	b.reconciler = newReconciler(trimmed, interceptor.NewClient(c, interceptor.Funcs{List: listByController}), recorder, b.clock)
	b.ask(site, change...)
	return b
}

// getTrimmed reads an object from the API server, trimmed as in a cache.
func getTrimmed(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object,
	opts ...client.GetOption) error {
	if err := c.Get(ctx, key, obj, opts...); err != nil {
		return err
	}
	trimmed, err := Trim(obj)
	if content, ok := obj.(*corev1.ConfigMap); ok {
		*content = *trimmed.(*corev1.ConfigMap)
	}
	return err
}

// listByController reads from the API server the list that a cache would return from its index.
func listByController(ctx context.Context, c client.WithWatch, list client.ObjectList,
	opts ...client.ListOption) error {
	wanted := (&client.ListOptions{}).ApplyOptions(opts)
	if err := c.List(ctx, list, client.InNamespace(wanted.Namespace)); err != nil {
		return err
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return err
	}
	return meta.SetList(list, slices.DeleteFunc(items, func(o runtime.Object) bool {
		return !slices.ContainsFunc(indexController(o.(client.Object)), func(uid string) bool {
			return wanted.FieldSelector.Matches(fields.Set{controllerField: uid})
		})
	}))
}

// reconcileLater reconciles once, a minute after the previous time, and returns the result.
func (b *fixture) reconcileLater() (ctrl.Result, error) {
	b.clock.SetTime(b.clock.Now().Add(time.Minute))
	return b.reconcileNow()
}

// reconcileNow reconciles once, at the same time as the previous reconcile.
func (b *fixture) reconcileNow() (ctrl.Result, error) {
	return b.reconciler.Reconcile(b.t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: b.namespace, Name: site}})
}

// reconcile reconciles once, without an error, and returns the number of writes.
func (b *fixture) reconcile() int {
	b.t.Helper()
	before := b.writes()
	_, err := b.reconcileLater()
	b.must(err)
	return b.writes() - before
}

// recorded returns the events since the last call, as "type reason".
func (b *fixture) recorded() (all []string) {
	for len(b.events) > 0 {
		words := strings.Fields(<-b.events)
		all = append(all, words[0]+" "+words[1])
	}
	return all
}

const (
	well     = "False " + owned.ReasonAsExpected
	complete = "False " + owned.ReasonComplete
)
