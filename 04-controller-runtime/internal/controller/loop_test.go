package controller_test

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
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

// This test lets a manager run the loop. The lab checks which events enqueue a MyWeb.

// A loop is a manager behind a wire. It serves the MyWebs of a namespace that belongs to the test.
type loop struct {
	*gomega.WithT
	*wire
	t     *testing.T
	admin client.Client
	here  string
	log   logr.Logger
	stop  func() // ends the manager and waits for it
}

// newLoop makes the namespace, in which nothing runs yet.
func newLoop(t *testing.T) *loop {
	t.Helper()
	l := &loop{WithT: gomega.NewWithT(t), wire: &wire{}, t: t, log: logr.Discard(), stop: func() {}}
	l.SetDefaultEventuallyTimeout(20 * time.Second)
	l.SetDefaultEventuallyPollingInterval(20 * time.Millisecond)
	l.SetDefaultConsistentlyDuration(1500 * time.Millisecond)
	l.SetDefaultConsistentlyPollingInterval(50 * time.Millisecond)
	var err error
	l.admin, err = client.New(config, client.Options{})
	l.Expect(err).NotTo(gomega.HaveOccurred())
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "web-"}}
	l.Expect(l.admin.Create(t.Context(), namespace)).To(gomega.Succeed())
	l.here = namespace.Name
	return l
}

// start runs a manager with a controller until the test ends.
func (l *loop) start(addController func(ctrl.Manager) error) {
	l.t.Helper()
	cfg := rest.CopyConfig(config)
	cfg.QPS = -1
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { l.next = next; return l.wire })
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Client:     client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: new(true)}},
		Cache:      operator.CacheOptions([]string{l.here}),
		Metrics:    server.Options{BindAddress: "0"},
		Controller: ctrlconfig.Controller{SkipNameValidation: new(true)},
		Logger:     l.log,
	})
	l.Expect(err).NotTo(gomega.HaveOccurred())
	l.Expect(addController(mgr)).To(gomega.Succeed())
	l.stop = testenv.Run(l.t, mgr.Start)
}

// create makes a MyWeb, on a node port that the cluster chooses.
func (l *loop) create(name string) {
	l.t.Helper()
	l.Expect(l.admin.Create(l.t.Context(), &webv1.MyWeb{ObjectMeta: metav1.ObjectMeta{Namespace: l.here, Name: name},
		Spec: webv1.MyWebSpec{Image: "nginx"}})).To(gomega.Succeed())
}

func (l *loop) web(name string) *webv1.MyWeb {
	web := &webv1.MyWeb{}
	l.Expect(l.admin.Get(context.Background(), client.ObjectKey{Namespace: l.here, Name: name}, web)).To(gomega.Succeed())
	return web
}

var ports atomic.Int32

// freePort returns a node port that no other test uses. The API server allocates ports of this range only when it has
// no others.
func freePort() int32 { return 30000 + ports.Add(1) }

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
	l.start(operator.AddController)
	l.create("site")
	<-under
	var stopped atomic.Bool
	done := make(chan bool)
	go func() { l.stop(); stopped.Store(true); close(done) }()
	l.Consistently(stopped.Load, "500ms").Should(gomega.BeFalse(), "a write is under way")
	close(release)
	<-done
	l.Expect(meta.IsStatusConditionFalse(l.web("site").Status.Conditions, owned.Degraded)).To(gomega.BeTrue(),
		"the reconcile came to its end")
	if sent := slices.Sorted(maps.Keys(l.requests())); !slices.Contains(sent, "PUT mywebs/status site") {
		t.Errorf("sent: %v", sent)
	}
}
