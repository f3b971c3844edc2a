package webhook

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
	"example.com/operator-workshop/04-controller-runtime/internal/testenv"
	"example.com/operator-workshop/04-controller-runtime/internal/webhook/local"
)

// These tests let a real API server call the webhooks, as it calls a process outside a cluster: by URL.

var (
	config  *rest.Config
	pinned  = "nginx:1.29"
	said    = &bytes.Buffer{}
	admin   client.Client // its warnings are in said
	shipped = filepath.Join("..", "..", "config")
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(zap.New())
	utilruntime.Must(webv1.AddToScheme(scheme.Scheme))
	os.Exit(testenv.Main(m, func(cfg *rest.Config) (err error) {
		config = cfg
		heard := rest.CopyConfig(cfg)
		heard.WarningHandler = rest.NewWarningWriter(said, rest.WarningWriterOptions{})
		admin, err = client.New(heard, client.Options{})
		return err
	}, filepath.Join(shipped, "crd")))
}

// startManager runs a manager with the webhooks until the test ends, or until stop is called.
func startManager(t *testing.T, cfg *rest.Config, hooks *Webhooks, setup func(ctrl.Manager) error) (stop func()) {
	t.Helper()
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Client:                  client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: new(true)}},
		Metrics:                 server.Options{BindAddress: "0"},
		WebhookServer:           hooks.Server(),
		GracefulShutdownTimeout: new(30 * time.Second), // a rotation that is interrupted tries again for 20 s
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := setup(mgr); err != nil {
		t.Fatal(err)
	}
	return testenv.Run(t, mgr.Start)
}

// serve runs the webhooks as a process outside a cluster does, and waits until the API server calls them.
func serve(t *testing.T) (stop func()) {
	t.Helper()
	hooks, err := New(config, Options{Enabled: new(true), Port: testenv.FreePort(t)})
	if err != nil {
		t.Fatal(err)
	}
	stop = startManager(t, config, hooks, hooks.SetupWithManager)
	eventually(t, func(g gomega.Gomega) {
		web := myweb("default", "asked")
		web.Spec.Image = "nginx"
		g.Expect(since(func() {
			g.Expect(admin.Create(t.Context(), web, client.DryRunAll)).To(gomega.Succeed())
		})).NotTo(gomega.BeEmpty())
		g.Expect(web.Spec.PageContentHTML).NotTo(gomega.BeNil())
	})
	return stop
}

// since returns the warnings during f, a line for each.
func since(f func()) string {
	said.Reset()
	f()
	return said.String()
}

func eventually(t *testing.T, f func(gomega.Gomega)) {
	t.Helper()
	gomega.NewWithT(t).Eventually(f, "30s", "50ms").Should(gomega.Succeed())
}

// namespace makes a namespace for a test.
func namespace(t *testing.T) string {
	t.Helper()
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "web-"}}
	must(t, admin.Create(t.Context(), n))
	return n.Name
}

func myweb(namespace, name string, change ...func(*webv1.MyWeb)) *webv1.MyWeb {
	web := &webv1.MyWeb{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: webv1.MyWebSpec{Image: pinned}}
	for _, f := range change {
		f(web)
	}
	return web
}

func port(n int32) func(*webv1.MyWeb) {
	return func(web *webv1.MyWeb) { web.Spec.NodePortNumber = &n }
}

func page(html string) func(*webv1.MyWeb) {
	return func(web *webv1.MyWeb) { web.Spec.PageContentHTML = &html }
}

// create creates a MyWeb and removes it at the end of the test: node ports belong to the whole cluster.
func create(t *testing.T, web *webv1.MyWeb) *webv1.MyWeb {
	t.Helper()
	must(t, admin.Create(t.Context(), web))
	t.Cleanup(func() { must(t, client.IgnoreNotFound(admin.Delete(context.Background(), web))) })
	return web
}

// withoutWebhooks waits until the API server does not call the webhooks of the previous test any more.
func withoutWebhooks(t *testing.T, namespace string) {
	t.Helper()
	eventually(t, func(g gomega.Gomega) {
		g.Expect(admin.Create(t.Context(), myweb(namespace, "probe"), client.DryRunAll)).To(gomega.Succeed())
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// shippedConfigurations reads config/webhook.
func shippedConfigurations(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	all, err := local.Shipped()
	must(t, err)
	return all
}

// webhookOf is the webhook in a configuration.
func webhookOf(configuration *unstructured.Unstructured) map[string]any {
	return configuration.Object["webhooks"].([]any)[0].(map[string]any)
}

// shippedByURL returns the shipped configurations with url in place of the Service: the cluster of these tests has
// no pods to which a Service could lead.
func shippedByURL(t *testing.T, url string) []*unstructured.Unstructured {
	t.Helper()
	all := shippedConfigurations(t)
	for _, u := range all {
		must(t, local.CallByURL(u, url, nil))
	}
	return all
}
