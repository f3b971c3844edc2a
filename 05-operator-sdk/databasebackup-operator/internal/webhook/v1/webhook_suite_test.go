package v1

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	databasesv1 "github.com/example/databasebackup-operator/api/v1"
	"github.com/example/databasebackup-operator/internal/testenv"
	// +kubebuilder:scaffold:imports
)

// The scaffold brings this suite, with Ginkgo: a real API server asks the webhooks as it does in a cluster,
// by the configurations of config/webhook. envtest writes its own certificate and address into them.

var (
	ctx       context.Context
	cancel    context.CancelFunc
	k8sClient client.Client
	testEnv   *envtest.Environment
	said      = &warnings{} // what the API server warned k8sClient of
)

func TestWebhooks(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(20 * time.Second)
	SetDefaultEventuallyPollingInterval(20 * time.Millisecond)
	RunSpecs(t, "Webhook Suite")
}

// warnings collects what the API server warns of.
type warnings struct {
	mu  sync.Mutex
	all []string
}

func (w *warnings) HandleWarningHeaderWithContext(_ context.Context, _ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, text)
}

// take returns what was said since the last call.
func (w *warnings) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.all
	w.all = nil
	return all
}

var _ = BeforeSuite(func() {
	ctrl.SetLogger(logr.Discard())
	ctx, cancel = context.WithCancel(context.Background())
	scheme := runtime.NewScheme()
	Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	Expect(databasesv1.AddToScheme(scheme)).To(Succeed())
	// +kubebuilder:scaffold:scheme

	By("starting an API server that knows the webhooks")
	assets, err := testenv.Assets()
	Expect(err).NotTo(HaveOccurred())
	config := filepath.Join("..", "..", "..", "config")
	testEnv = &envtest.Environment{
		BinaryAssetsDirectory: assets,
		UseExistingCluster:    new(false),
		CRDDirectoryPaths:     []string{filepath.Join(config, "crd", "bases")},
		ErrorIfCRDPathMissing: true,
		WebhookInstallOptions: envtest.WebhookInstallOptions{Paths: []string{filepath.Join(config, "webhook", "manifests.yaml")}},
	}
	cfg, err := testEnv.Start()
	Expect(err).NotTo(HaveOccurred())
	testenv.OnInterrupt(func() { _ = testEnv.Stop() })
	heard := rest.CopyConfig(cfg)
	heard.WarningHandlerWithContext = said
	k8sClient, err = client.New(heard, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())

	By("serving the webhooks")
	where := &testEnv.WebhookInstallOptions
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme:        scheme,
		Metrics:       server.Options{BindAddress: "0"},
		WebhookServer: webhook.NewServer(webhook.Options{Host: where.LocalServingHost, Port: where.LocalServingPort, CertDir: where.LocalServingCertDir}),
	})
	Expect(err).NotTo(HaveOccurred())
	Expect(SetupDatabaseBackupWebhookWithManager(mgr, "")).To(Succeed())
	// +kubebuilder:scaffold:webhook
	go func() {
		defer GinkgoRecover()
		Expect(mgr.Start(ctx)).To(Succeed())
	}()
	address := net.JoinHostPort(where.LocalServingHost, fmt.Sprint(where.LocalServingPort))
	Eventually(func() error { // failurePolicy is Ignore: who asks too early gets no answer, and no error
		conn, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			return err
		}
		return conn.Close()
	}).Should(Succeed())
	Expect(mgr.GetCache().WaitForCacheSync(ctx)).To(BeTrue())
})

var _ = AfterSuite(func() {
	cancel()
	Expect(testEnv.Stop()).To(Succeed())
})
