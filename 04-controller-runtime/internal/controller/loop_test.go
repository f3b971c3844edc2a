package controller_test

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
	"example.com/operator-workshop/04-controller-runtime/internal/operator"
	"example.com/operator-workshop/04-controller-runtime/internal/owned"
	"example.com/operator-workshop/04-controller-runtime/internal/testenv"
)

// These tests let a manager run the loop. They check which events enqueue a MyWeb, and when.

// A loop is a manager behind a wire. It serves the MyWebs of two namespaces that belong to the test.
type loop struct {
	*gomega.WithT
	*wire
	t     *testing.T
	admin client.Client
	here  string
	there string
	stop  func() // ends the manager and waits for it
}

// newLoop makes the namespaces, in which nothing runs yet.
func newLoop(t *testing.T) *loop {
	t.Helper()
	l := &loop{WithT: gomega.NewWithT(t), wire: &wire{}, t: t, stop: func() {}}
	l.SetDefaultEventuallyTimeout(20 * time.Second)
	l.SetDefaultEventuallyPollingInterval(20 * time.Millisecond)
	l.SetDefaultConsistentlyDuration(1500 * time.Millisecond)
	l.SetDefaultConsistentlyPollingInterval(50 * time.Millisecond)
	var err error
	l.admin, err = client.New(config, client.Options{Scheme: newScheme()})
	l.Expect(err).NotTo(gomega.HaveOccurred())
	for _, name := range []*string{&l.here, &l.there} {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "web-"}}
		l.Expect(l.admin.Create(t.Context(), namespace)).To(gomega.Succeed())
		*name = namespace.Name
	}
	return l
}

// start runs the manager until the test ends.
func (l *loop) start(workers int) {
	l.t.Helper()
	cfg := rest.CopyConfig(config)
	cfg.QPS = -1
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { l.next = next; return l.wire })
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme:     newScheme(),
		Client:     client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: new(true)}},
		Cache:      operator.CacheOptions([]string{l.here, l.there}),
		Metrics:    server.Options{BindAddress: "0"},
		Controller: ctrlconfig.Controller{SkipNameValidation: new(true), MaxConcurrentReconciles: workers},
	})
	l.Expect(err).NotTo(gomega.HaveOccurred())
	l.Expect(operator.AddController(mgr)).To(gomega.Succeed())
	l.stop = testenv.Run(l.t, mgr.Start)
}

// create makes a MyWeb with the given changes, on a node port that the cluster chooses.
func (l *loop) create(name string, change ...func(*webv1.MyWeb)) *webv1.MyWeb {
	l.t.Helper()
	web := &webv1.MyWeb{ObjectMeta: metav1.ObjectMeta{Namespace: l.here, Name: name},
		Spec: webv1.MyWebSpec{Image: "nginx"}}
	for _, f := range change {
		f(web)
	}
	l.Expect(l.admin.Create(l.t.Context(), web)).To(gomega.Succeed())
	return web
}

func (l *loop) web(name string) *webv1.MyWeb {
	web := &webv1.MyWeb{}
	l.Expect(l.admin.Get(context.Background(), client.ObjectKey{Namespace: l.here, Name: name}, web)).To(gomega.Succeed())
	return web
}

// degraded returns a function that returns "status reason" of a MyWeb's condition Degraded.
func (l *loop) degraded(name string) func() string {
	return func() string {
		if c := meta.FindStatusCondition(l.web(name).Status.Conditions, owned.Degraded); c != nil {
			return string(c.Status) + " " + c.Reason
		}
		return "none"
	}
}

var ports atomic.Int32

// freePort returns a node port that no other test uses. The API server allocates ports of this range only when it has
// no others.
func freePort() int32 { return 30000 + ports.Add(1) }

const well = "False AsExpected"

func TestATakenNodePortHealsByAWatchAndNotByAsking(t *testing.T) {
	l := newLoop(t)
	port := freePort()
	other := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: l.there, Name: "other"},
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{{Port: 80, NodePort: port}}}}
	l.Expect(l.admin.Create(t.Context(), other)).To(gomega.Succeed())
	l.start(2)
	for _, name := range []string{"one", "two"} { // both ask for it
		l.create(name, asking(port))
		l.Eventually(l.degraded(name)).Should(gomega.Equal("True NodePortUnavailable"))
	}
	before := l.writes("PATCH services")
	l.Consistently(func() int64 { return l.writes("PATCH services") }).Should(gomega.Equal(before), "it is tried again")

	other.Spec.Ports[0].NodePort = freePort() // an update, whose old state matters
	l.Expect(l.admin.Update(t.Context(), other)).To(gomega.Succeed())
	healed := func() int {
		n := 0
		for _, name := range []string{"one", "two"} {
			if l.degraded(name)() == well {
				n++
			}
		}
		return n
	}
	l.Eventually(healed).Should(gomega.Equal(1), "one of the two gets the port")
	l.Consistently(healed).Should(gomega.Equal(1))
	for _, name := range []string{"one", "two"} {
		if l.degraded(name)() == well {
			l.Expect(l.admin.Delete(t.Context(), l.web(name))).To(gomega.Succeed())
			l.Expect(l.admin.Delete(t.Context(), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: l.here, Name: name}})).
				To(gomega.Succeed())
		} else {
			defer l.Eventually(l.degraded(name)).Should(gomega.Equal(well), "a deletion frees the port too")
		}
	}
}

// hold delays a request: under reports that it has begun, release lets it continue.
func (l *loop) hold(request string) (under, release chan bool) {
	under, release = make(chan bool, 1), make(chan bool)
	l.between(func(what string, pass func() (*http.Response, error)) (*http.Response, error) {
		if what == request {
			under <- true
			<-release
		}
		return pass()
	})
	return under, release
}

func TestAReconcileUnderWayEndsBeforeTheManagerDoes(t *testing.T) {
	l := newLoop(t)
	under, release := l.hold("PATCH configmaps site")
	l.start(1)
	l.create("site")
	<-under
	var stopped atomic.Bool
	done := make(chan bool)
	go func() { l.stop(); stopped.Store(true); close(done) }()
	l.Consistently(stopped.Load, "500ms").Should(gomega.BeFalse(), "a write is under way")
	close(release)
	<-done
	l.Expect(l.degraded("site")()).To(gomega.Equal(well), "the reconcile came to its end")
	if sent := slices.Sorted(maps.Keys(l.requests())); !slices.Contains(sent, "PUT mywebs/status site") {
		t.Errorf("sent: %v", sent)
	}
}
