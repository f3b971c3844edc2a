package controller

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	cachev1alpha1 "github.com/example/memcached-operator/api/v1alpha1"
	"github.com/example/memcached-operator/internal/testenv"
	// +kubebuilder:scaffold:imports
)

// The scaffold contains this file and memcached_controller_test.go, both with Ginkgo. Here they follow the
// steps of the tutorial; all other tests of this package are plain Go. All tests share one API server.

var (
	ctx       context.Context
	cancel    context.CancelFunc
	cfg       *rest.Config
	k8sClient client.Client
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	utilruntime.Must(cachev1alpha1.AddToScheme(scheme.Scheme))
	// +kubebuilder:scaffold:scheme
	os.Exit(testenv.Main(m, func(config *rest.Config) error { cfg = config; return nil },
		filepath.Join("..", "..", "config", "crd", "bases")))
}

func TestControllers(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(20 * time.Second)
	SetDefaultEventuallyPollingInterval(20 * time.Millisecond)
	RunSpecs(t, "Controller Suite")
}

var _ = BeforeSuite(func() {
	ctx, cancel = context.WithCancel(context.Background())
	var err error
	k8sClient, err = client.New(cfg, client.Options{})
	Expect(err).NotTo(HaveOccurred())

	By("starting a manager for the namespace of the steps")
	mgr, err := newManager(cfg, suiteNamespace)
	Expect(err).NotTo(HaveOccurred())
	recorder := mgr.GetEventRecorder("memcached-operator")
	hardened := compose(mgr.GetClient(), mgr.GetAPIReader(), recorder, clock.RealClock{})
	Expect(SetupWithManager(mgr, hardened, controller.Options{})).To(Succeed())
	go func() {
		defer GinkgoRecover()
		Expect(mgr.Start(ctx)).To(Succeed())
	}()
})

var _ = AfterSuite(func() { cancel() })
