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
	"k8s.io/client-go/util/workqueue"

	"example.com/operator-workshop/03-client-go-controller/internal/myweb"
	webv1 "example.com/operator-workshop/03-client-go-controller/pkg/apis/myweb/v1"
	"example.com/operator-workshop/03-client-go-controller/pkg/generated/clientset/versioned"
	webscheme "example.com/operator-workshop/03-client-go-controller/pkg/generated/clientset/versioned/scheme"
	webclient "example.com/operator-workshop/03-client-go-controller/pkg/generated/clientset/versioned/typed/myweb/v1"
)

// Kinds of children, and their resources.
var resources = map[string]string{"ConfigMap": "configmaps", "Deployment": "deployments", "Service": "services"}

const workers = 4 // of every controller

// A countingQueue counts the syncs that have ended.
type countingQueue struct {
	workqueue.TypedRateLimitingInterface[cache.ObjectName]
	syncs atomic.Int64
}

func (q *countingQueue) Done(name cache.ObjectName) {
	q.TypedRateLimitingInterface.Done(name)
	q.syncs.Add(1)
}

// A fixture is a namespace of one test, with a controller behind a wire.
type fixture struct {
	*testing.T
	*gomega.WithT
	*wire
	controller *Controller
	kube       kubernetes.Interface // for the test itself, not counted
	webs       webclient.MyWebInterface
	queue      *countingQueue
	stop       func() // ends the controller and waits for it
}

// newFixture creates a namespace in which no controller runs yet.
func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{T: t, WithT: gomega.NewWithT(t), kube: kubernetes.NewForConfigOrDie(config), stop: func() {}}
	namespace, err := f.kube.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "web-"}}, metav1.CreateOptions{})
	f.must(err)
	f.wire = &wire{namespace: namespace.Name}
	f.webs = versioned.NewForConfigOrDie(config).OperatorV1().MyWebs(namespace.Name)
	return f
}

// start runs a controller until the test ends. It resets the counts of requests.
func (f *fixture) start() {
	f.Helper()
	cfg := rest.CopyConfig(config)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { f.next = next; return f.wire })
	kube, web := kubernetes.NewForConfigOrDie(cfg), versioned.NewForConfigOrDie(cfg)
	ctx, cancel := context.WithCancel(context.Background())
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: kube.EventsV1()})
	f.must(broadcaster.StartRecordingToSinkWithContext(context.WithoutCancel(ctx)))
	c, err := NewController(kube, web, broadcaster.NewRecorder(webscheme.Scheme, "myweb-operator"))
	f.must(err)
	f.queue = &countingQueue{TypedRateLimitingInterface: c.workqueue}
	c.workqueue, f.controller = f.queue, c
	c.StartInformers(ctx)
	ended := make(chan struct{})
	f.stop = sync.OnceFunc(func() {
		cancel()
		<-ended
		c.ShutdownInformers()
		broadcaster.Shutdown()
	})
	f.Cleanup(func() { f.stop() })
	if !cache.WaitForCacheSync(ctx.Done(), c.HasSynced) {
		f.Fatal("the caches have not synced")
	}
	f.forget()
	go func() { defer close(ended); c.Run(ctx, workers) }()
}

// newServed starts a controller on the sample MyWeb with a change, and waits until the MyWeb is completed.
func newServed(t *testing.T, change ...func(*webv1.MyWeb)) *fixture {
	t.Helper()
	f := newFixture(t)
	f.start()
	f.create("site", change...)
	f.complete("site")
	return f
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// create makes the sample MyWeb with a change, on a node port that the cluster chooses.
func (f *fixture) create(name string, change ...func(*webv1.MyWeb)) *webv1.MyWeb {
	f.Helper()
	web := &webv1.MyWeb{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: webv1.MyWebSpec{Image: "nginx", PageContentHTML: new("<h1>Hello</h1>")}}
	for _, change := range change {
		change(web)
	}
	web, err := f.webs.Create(f.Context(), web, metav1.CreateOptions{})
	f.must(err)
	return web
}

// edit changes the spec of a MyWeb as its user would.
func (f *fixture) edit(name string, change func(*webv1.MyWebSpec)) {
	f.Helper()
	f.must(retry.RetryOnConflict(retry.DefaultRetry, func() error {
		web := f.web(name)
		change(&web.Spec)
		_, err := f.webs.Update(f.Context(), web, metav1.UpdateOptions{})
		return err
	}))
}

func (f *fixture) web(name string) *webv1.MyWeb {
	f.Helper()
	web, err := f.webs.Get(f.Context(), name, metav1.GetOptions{})
	f.must(err)
	return web
}

// condition returns a function that returns "status reason" of a condition of a MyWeb.
func (f *fixture) condition(name, kind string) func() string {
	return func() string {
		c := meta.FindStatusCondition(f.web(name).Status.Conditions, kind)
		if c == nil {
			return "none"
		}
		return string(c.Status) + " " + c.Reason
	}
}

func (f *fixture) completed(name string) func() bool {
	return func() bool {
		s := f.web(name)
		return s.Status.Completed && s.Status.ObservedGeneration == s.Generation
	}
}

// complete acts as the Deployment controller, which envtest lacks, until a MyWeb is completed: all desired pods
// are ready at once.
func (f *fixture) complete(name string) {
	f.Helper()
	f.Eventually(func() bool {
		if !f.exists("Deployment", name)() {
			return false
		}
		f.rollout(name, func(d *appsv1.Deployment) { d.Status = ready(d, *d.Spec.Replicas) })
		return f.completed(name)()
	}).Should(gomega.BeTrue())
}

// ready is the status of a Deployment that has n pods, all of them new.
func ready(d *appsv1.Deployment, n int32) appsv1.DeploymentStatus {
	return appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n,
		ReadyReplicas: n, AvailableReplicas: n}
}

// rollout changes the status of a Deployment.
func (f *fixture) rollout(name string, change func(*appsv1.Deployment)) {
	f.Helper()
	f.must(retry.RetryOnConflict(retry.DefaultRetry, func() error {
		d := f.child("Deployment", name).(*appsv1.Deployment)
		change(d)
		_, err := f.kube.AppsV1().Deployments(f.namespace).UpdateStatus(f.Context(), d, metav1.UpdateOptions{})
		return err
	}))
}

func (f *fixture) get(kind, name string) (myweb.Object, error) {
	switch kind {
	case "ConfigMap":
		return f.kube.CoreV1().ConfigMaps(f.namespace).Get(context.Background(), name, metav1.GetOptions{})
	case "Deployment":
		return f.kube.AppsV1().Deployments(f.namespace).Get(context.Background(), name, metav1.GetOptions{})
	default:
		return f.kube.CoreV1().Services(f.namespace).Get(context.Background(), name, metav1.GetOptions{})
	}
}

func (f *fixture) child(kind, name string) myweb.Object {
	f.Helper()
	obj, err := f.get(kind, name)
	f.must(err)
	return obj
}

func (f *fixture) exists(kind, name string) func() bool {
	return func() bool {
		_, err := f.get(kind, name)
		if !apierrors.IsNotFound(err) {
			f.must(err)
		}
		return err == nil
	}
}

// patch changes an object as another client would: by a JSON patch.
func (f *fixture) patch(kind, name, patch string) {
	f.Helper()
	f.must(f.client(kind).Patch(types.JSONPatchType).Namespace(f.namespace).Resource(resources[kind]).Name(name).
		Body([]byte(patch)).Do(f.Context()).Error())
}

func (f *fixture) remove(kind, name string) {
	f.Helper()
	f.must(f.client(kind).Delete().Namespace(f.namespace).Resource(resources[kind]).Name(name).
		Do(context.Background()).Error())
}

// put creates an object and returns it as stored.
func (f *fixture) put(obj myweb.Object) (stored myweb.Object) {
	f.Helper()
	var err error
	switch obj := obj.(type) {
	case *corev1.ConfigMap:
		stored, err = f.kube.CoreV1().ConfigMaps(f.namespace).Create(context.Background(), obj, metav1.CreateOptions{})
	case *appsv1.Deployment:
		stored, err = f.kube.AppsV1().Deployments(f.namespace).Create(context.Background(), obj, metav1.CreateOptions{})
	case *corev1.Service:
		stored, err = f.kube.CoreV1().Services(f.namespace).Create(context.Background(), obj, metav1.CreateOptions{})
	}
	f.must(err)
	return stored
}

func (f *fixture) client(kind string) rest.Interface {
	if kind == "Deployment" {
		return f.kube.AppsV1().RESTClient()
	}
	return f.kube.CoreV1().RESTClient()
}

// recorded returns the events about MyWebs. The API server itself records events, about Services.
func (f *fixture) recorded() (all []eventsv1.Event) {
	f.Helper()
	list, err := f.kube.EventsV1().Events(f.namespace).List(f.Context(), metav1.ListOptions{})
	f.must(err)
	return slices.DeleteFunc(list.Items, func(e eventsv1.Event) bool { return e.Regarding.Kind != "MyWeb" })
}

// events returns "type reason" of the recorded events, each as often as it happened.
func (f *fixture) events() (all []string) {
	f.Helper()
	for _, e := range f.recorded() {
		all = append(all, e.Type+" "+e.Reason)
		if e.Series != nil {
			for range e.Series.Count - 1 { // Count includes the first event
				all = append(all, e.Type+" "+e.Reason)
			}
		}
	}
	return all
}

func (f *fixture) warnings() []string {
	f.Helper()
	return slices.DeleteFunc(f.events(), func(e string) bool { return !strings.HasPrefix(e, corev1.EventTypeWarning) })
}

// sync makes the controller sync a MyWeb, and returns when the sync has ended. It enqueues the MyWeb twice: the second
// sync begins after the first.
func (f *fixture) sync(name string) {
	f.Helper()
	for range 2 {
		before := f.queue.syncs.Load()
		f.controller.workqueue.Add(cache.NewObjectName(f.namespace, name))
		f.Eventually(f.queue.syncs.Load).Should(gomega.BeNumerically(">", before))
	}
}

var ports atomic.Int32

// freePort returns a node port that no other test uses, from the range that the API server allocates
// last.
func freePort() int32 { return 30000 + ports.Add(1) }
