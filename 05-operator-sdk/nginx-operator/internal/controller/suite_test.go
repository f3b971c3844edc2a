package controller

import (
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	proxyv1alpha1 "github.com/example/nginx-operator/api/v1alpha1"
	"github.com/example/nginx-operator/internal/testenv"
)

// The scaffold contains a suite of Ginkgo, a library with a special notation for tests: this file starts
// the suite, and nginx_controller_test.go is its test of the operator. All other tests here are plain Go.
// All tests share one API server.

var config *rest.Config

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	utilruntime.Must(proxyv1alpha1.AddToScheme(scheme.Scheme))
	os.Exit(testenv.Main(m, func(cfg *rest.Config) error { config = cfg; return nil },
		filepath.Join("..", "..", "config", "crd", "bases")))
}

var (
	ctx       context.Context
	cancel    context.CancelFunc
	k8sClient client.Client
	namespace string
	stopped   = make(chan error, 1)
)

func TestControllers(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Controller Suite")
}

var _ = BeforeSuite(func() {
	ctx, cancel = context.WithCancel(context.Background())
	var err error
	k8sClient, err = client.New(config, client.Options{})
	Expect(err).NotTo(HaveOccurred())

	By("making a namespace and running the operator in it")
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "suite-"}}
	Expect(k8sClient.Create(ctx, ns)).To(Succeed())
	namespace = ns.Name
	mgr, err := newManager(config, namespace)
	Expect(err).NotTo(HaveOccurred())
	Expect(addController(mgr, new(atomic.Int32), namespace)).To(Succeed())
	go func() { stopped <- mgr.Start(ctx) }()
})

var _ = AfterSuite(func() {
	cancel()
	Eventually(stopped, "10s").Should(Receive(BeNil()))
})
