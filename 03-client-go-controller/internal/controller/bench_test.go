package controller

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/onsi/gomega"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/retry"

	webv1 "example.com/operator-workshop/03-client-go-controller/pkg/apis/myweb/v1"
	"example.com/operator-workshop/03-client-go-controller/pkg/generated/clientset/versioned"
	webscheme "example.com/operator-workshop/03-client-go-controller/pkg/generated/clientset/versioned/scheme"
	webclient "example.com/operator-workshop/03-client-go-controller/pkg/generated/clientset/versioned/typed/myweb/v1"
)

// Kinds of children, and their resources.
var resources = map[string]string{"ConfigMap": "configmaps", "Deployment": "deployments", "Service": "services"}

// workers of every controller.
const workers = 4

// A bench is a namespace of the test's own, with a controller behind a wire.
type bench struct {
	*testing.T
	*gomega.WithT
	*wire
	controller *Controller
	kube       kubernetes.Interface // the test's own, not counted
	webs       webclient.MyWebInterface
	looks      atomic.Int64 // how often a MyWeb was looked at
	stop       func()       // ends the controller and waits for it
}

// newBench makes a namespace in which nothing runs yet.
func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{T: t, WithT: gomega.NewWithT(t), kube: kubernetes.NewForConfigOrDie(config), stop: func() {}}
	namespace, err := b.kube.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "web-"}}, metav1.CreateOptions{})
	b.must(err)
	b.wire = &wire{namespace: namespace.Name}
	b.webs = versioned.NewForConfigOrDie(config).OperatorV1().MyWebs(namespace.Name)
	return b
}

// start runs a controller, changed, until the test ends. Nothing that it sent before is counted.
func (b *bench) start(o Options, change ...func(*Controller)) {
	b.Helper()
	cfg := rest.CopyConfig(config)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { b.next = next; return b.wire })
	kube, web := kubernetes.NewForConfigOrDie(cfg), versioned.NewForConfigOrDie(cfg)
	caches, err := NewCaches(kube, web, Trim)
	b.must(err)
	ctx, cancel := context.WithCancel(context.Background())
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: kube.EventsV1()})
	b.must(broadcaster.StartRecordingToSinkWithContext(context.WithoutCancel(ctx)))
	c, err := New(kube, web, caches, broadcaster.NewRecorder(webscheme.Scheme, "myweb-operator"), o)
	b.must(err)
	desired := c.desired
	c.desired = func(web *webv1.MyWeb) children { b.looks.Add(1); return desired(web) }
	for _, f := range change {
		f(c)
	}
	b.controller = c
	caches.Start(ctx)
	ended := make(chan struct{})
	b.stop = sync.OnceFunc(func() {
		cancel()
		<-ended
		caches.Shutdown()
		broadcaster.Shutdown()
	})
	b.Cleanup(func() { b.stop() })
	if !caches.Wait(ctx) {
		b.Fatal("the caches were not filled")
	}
	b.forget()
	go func() { defer close(ended); c.Run(ctx, workers) }()
}

// newServed starts a controller on the sample MyWeb, changed, and waits until it is completed.
func newServed(t *testing.T, change ...func(*webv1.MyWeb)) *bench {
	t.Helper()
	b := newBench(t)
	b.start(Options{})
	b.create("site", change...)
	b.complete("site")
	return b
}

// run is t.Run with the same bench.
func (b *bench) run(name string, f func()) {
	t, g := b.T, b.WithT
	defer func() { b.T, b.WithT = t, g }()
	t.Run(name, func(t *testing.T) {
		b.T, b.WithT = t, gomega.NewWithT(t)
		f()
	})
}

func (b *bench) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// create makes the sample MyWeb, changed, on a node port that the cluster chooses.
func (b *bench) create(name string, change ...func(*webv1.MyWeb)) *webv1.MyWeb {
	b.Helper()
	web := &webv1.MyWeb{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: webv1.MyWebSpec{Image: "nginx", PageContentHTML: new("<h1>Hello</h1>")}}
	for _, f := range change {
		f(web)
	}
	web, err := b.webs.Create(b.Context(), web, metav1.CreateOptions{})
	b.must(err)
	return web
}

// edit changes the spec of a MyWeb as its user would.
func (b *bench) edit(name string, change func(*webv1.MyWebSpec)) {
	b.Helper()
	b.must(retry.RetryOnConflict(retry.DefaultRetry, func() error {
		web := b.web(name)
		change(&web.Spec)
		_, err := b.webs.Update(b.Context(), web, metav1.UpdateOptions{})
		return err
	}))
}

func (b *bench) web(name string) *webv1.MyWeb {
	b.Helper()
	web, err := b.webs.Get(b.Context(), name, metav1.GetOptions{})
	b.must(err)
	return web
}

// condition returns a function that says "status reason" of a condition of a MyWeb.
func (b *bench) condition(name, kind string) func() string {
	return func() string {
		c := meta.FindStatusCondition(b.web(name).Status.Conditions, kind)
		if c == nil {
			return "none"
		}
		return string(c.Status) + " " + c.Reason
	}
}

func (b *bench) completed(name string) func() bool {
	return func() bool {
		s := b.web(name)
		return s.Status.Completed && s.Status.ObservedGeneration == s.Generation
	}
}

// complete plays the Deployment controller, which envtest lacks, until a MyWeb is completed: all wanted pods
// are ready at once.
func (b *bench) complete(name string) {
	b.Helper()
	b.Eventually(func() bool {
		if !b.exists("Deployment", name)() {
			return false
		}
		b.rollout(name, func(d *appsv1.Deployment) { d.Status = ready(d, *d.Spec.Replicas) })
		return b.completed(name)()
	}).Should(gomega.BeTrue())
}

// ready is the status of a Deployment with so many new pods, which are all there are.
func ready(d *appsv1.Deployment, n int32) appsv1.DeploymentStatus {
	return appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n}
}

// rollout changes the status of a Deployment.
func (b *bench) rollout(name string, change func(*appsv1.Deployment)) {
	b.Helper()
	b.must(retry.RetryOnConflict(retry.DefaultRetry, func() error {
		d := b.child("Deployment", name).(*appsv1.Deployment)
		change(d)
		_, err := b.kube.AppsV1().Deployments(b.namespace).UpdateStatus(b.Context(), d, metav1.UpdateOptions{})
		return err
	}))
}

func (b *bench) get(kind, name string) (object, error) {
	switch kind {
	case "ConfigMap":
		return b.kube.CoreV1().ConfigMaps(b.namespace).Get(context.Background(), name, metav1.GetOptions{})
	case "Deployment":
		return b.kube.AppsV1().Deployments(b.namespace).Get(context.Background(), name, metav1.GetOptions{})
	default:
		return b.kube.CoreV1().Services(b.namespace).Get(context.Background(), name, metav1.GetOptions{})
	}
}

func (b *bench) child(kind, name string) object {
	b.Helper()
	obj, err := b.get(kind, name)
	b.must(err)
	return obj
}

func (b *bench) exists(kind, name string) func() bool {
	return func() bool {
		_, err := b.get(kind, name)
		if !apierrors.IsNotFound(err) {
			b.must(err)
		}
		return err == nil
	}
}

// patch changes an object as somebody else would: by a JSON patch.
func (b *bench) patch(kind, name, patch string) {
	b.Helper()
	b.must(b.client(kind).Patch(types.JSONPatchType).Namespace(b.namespace).Resource(resources[kind]).Name(name).
		Body([]byte(patch)).Do(b.Context()).Error())
}

func (b *bench) remove(kind, name string) {
	b.Helper()
	b.must(b.client(kind).Delete().Namespace(b.namespace).Resource(resources[kind]).Name(name).Do(context.Background()).Error())
}

// put creates an object and returns it as stored.
func (b *bench) put(obj object) (stored object) {
	b.Helper()
	var err error
	switch obj := obj.(type) {
	case *corev1.ConfigMap:
		stored, err = b.kube.CoreV1().ConfigMaps(b.namespace).Create(context.Background(), obj, metav1.CreateOptions{})
	case *appsv1.Deployment:
		stored, err = b.kube.AppsV1().Deployments(b.namespace).Create(context.Background(), obj, metav1.CreateOptions{})
	case *corev1.Service:
		stored, err = b.kube.CoreV1().Services(b.namespace).Create(context.Background(), obj, metav1.CreateOptions{})
	}
	b.must(err)
	return stored
}

func (b *bench) client(kind string) rest.Interface {
	if kind == "Deployment" {
		return b.kube.AppsV1().RESTClient()
	}
	return b.kube.CoreV1().RESTClient()
}

// recorded are the events about MyWebs. The API server records some of its own, about Services.
func (b *bench) recorded() (all []eventsv1.Event) {
	b.Helper()
	list, err := b.kube.EventsV1().Events(b.namespace).List(b.Context(), metav1.ListOptions{})
	b.must(err)
	return slices.DeleteFunc(list.Items, func(e eventsv1.Event) bool { return e.Regarding.Kind != "MyWeb" })
}

// events are "type reason" of the ones that were recorded, each as often as it happened.
func (b *bench) events() (all []string) {
	b.Helper()
	for _, e := range b.recorded() {
		all = append(all, e.Type+" "+e.Reason)
		if e.Series != nil {
			for range e.Series.Count - 1 { // the first one is counted in it
				all = append(all, e.Type+" "+e.Reason)
			}
		}
	}
	return all
}

func (b *bench) warnings() []string {
	b.Helper()
	return slices.DeleteFunc(b.events(), func(e string) bool { return !strings.HasPrefix(e, corev1.EventTypeWarning) })
}

// look makes the controller look at a MyWeb, and returns when it has done so. It is asked twice: the second
// look begins when the first one has ended.
func (b *bench) look(name string) {
	b.Helper()
	for range 2 {
		before := b.looks.Load()
		b.controller.queue.Add(cache.NewObjectName(b.namespace, name))
		b.Eventually(b.looks.Load).Should(gomega.BeNumerically(">", before))
	}
}

// foreign returns an object that nobody controls.
func foreign(kind, name string) object {
	m := metav1.ObjectMeta{Name: name}
	switch kind {
	case "ConfigMap":
		return &corev1.ConfigMap{ObjectMeta: m, Data: map[string]string{"mine": "yes"}}
	case "Deployment":
		labels := map[string]string{"app": "other"}
		return &appsv1.Deployment{ObjectMeta: m, Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}}}
	default:
		return &corev1.Service{ObjectMeta: m, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	}
}

var ports atomic.Int32

// freePort returns a node port that no other test uses, from the range of which the API server gives
// none by itself while it has others.
func freePort() int32 { return 30000 + ports.Add(1) }
