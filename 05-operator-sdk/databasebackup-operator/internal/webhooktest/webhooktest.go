// Package webhooktest lets a real API server call the project's webhooks as in a cluster, with the configurations
// of config/webhook. envtest writes its own certificate and address into them.
package webhooktest

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"

	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/example/databasebackup-operator/internal/testenv"
	"github.com/example/databasebackup-operator/internal/webhookserver"
)

// Start starts an API server and a manager with the webhooks for a suite. It returns a client of the administrator,
// which writes a line for each warning.
func Start(said io.Writer, setup func(ctrl.Manager) error) client.Client {
	ginkgo.GinkgoHelper()
	ctrl.SetLogger(logr.Discard())
	gomega.SetDefaultEventuallyTimeout(20 * time.Second)
	gomega.SetDefaultEventuallyPollingInterval(20 * time.Millisecond)
	ginkgo.By("starting an API server that knows the webhooks")
	config := filepath.Join("..", "..", "..", "config")
	testEnv, err := testenv.NewEnvironment(filepath.Join(config, "crd", "bases"))
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	testEnv.WebhookInstallOptions = envtest.WebhookInstallOptions{Paths: []string{
		failing(filepath.Join(config, "webhook", "manifests.yaml"))}}
	ginkgo.DeferCleanup(testEnv.Stop) // also when it started only partly
	cfg, err := testEnv.Start()
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	heard := rest.CopyConfig(cfg)
	heard.WarningHandler = rest.NewWarningWriter(said, rest.WarningWriterOptions{})
	c, err := client.New(heard, client.Options{})
	gomega.Expect(err).NotTo(gomega.HaveOccurred())

	ginkgo.By("serving the webhooks")
	where := &testEnv.WebhookInstallOptions
	hooks, err := webhookserver.New(webhook.Options{
		Host: where.LocalServingHost, Port: where.LocalServingPort, CertDir: where.LocalServingCertDir})
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{Metrics: server.Options{BindAddress: "0"}, WebhookServer: hooks})
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	gomega.Expect(setup(mgr)).To(gomega.Succeed())
	ctx, cancel := context.WithCancel(context.Background())
	ginkgo.DeferCleanup(cancel)
	go func() {
		defer ginkgo.GinkgoRecover()
		gomega.Expect(mgr.Start(ctx)).To(gomega.Succeed())
	}()
	address := net.JoinHostPort(where.LocalServingHost, fmt.Sprint(where.LocalServingPort))
	gomega.Eventually(func() error {
		conn, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			return err
		}
		return conn.Close()
	}).Should(gomega.Succeed())
	gomega.Expect(mgr.GetCache().WaitForCacheSync(ctx)).To(gomega.BeTrue())
	return c
}

// failing copies webhook configurations and sets their policy to Fail: with Ignore, a test would not notice a call or
// a match condition that fails.
func failing(path string) string {
	shipped, err := os.ReadFile(path)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	gomega.Expect(shipped).To(gomega.ContainSubstring("failurePolicy: Ignore"))
	copied := filepath.Join(ginkgo.GinkgoT().TempDir(), "manifests.yaml")
	text := strings.ReplaceAll(string(shipped), "failurePolicy: Ignore", "failurePolicy: Fail")
	gomega.Expect(os.WriteFile(copied, []byte(text), 0o600)).To(gomega.Succeed())
	return copied
}
