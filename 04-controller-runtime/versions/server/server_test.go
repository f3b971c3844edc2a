package server_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/onsi/gomega"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	certutil "k8s.io/client-go/util/cert"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
	"example.com/operator-workshop/04-controller-runtime/internal/testenv"
	"example.com/operator-workshop/04-controller-runtime/internal/webhook"
	webv2 "example.com/operator-workshop/04-controller-runtime/versions/api/v2"
	"example.com/operator-workshop/04-controller-runtime/versions/server"
	"example.com/operator-workshop/04-controller-runtime/versions/versionstest"
)

// These tests let a real API server call the webhook.

func TestMain(m *testing.M) {
	ctrl.SetLogger(zap.New())
	m.Run()
}

func meta(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "default", Name: name} }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestConversion is about what the page does not show: there 03 and kubectl read and write in both versions, before and
// after the storage moves, with and without the webhook.
func TestConversion(t *testing.T) {
	c := versionstest.Start(t)
	err := server.Run(t.Context(), c.Config, server.Options{Host: "127.0.0.1", Port: c.Port})
	if !apierrors.IsNotFound(err) || !strings.Contains(err.Error(), "install the conversion webhook in the CRD") {
		t.Errorf("without a CRD: got %v", err)
	}
	c.Install(t, "2-store")
	c.Convert(t)
	t.Run("each version is validated by its own schema", func(t *testing.T) { validation(t, c) })
	t.Run("fields keep their managers", func(t *testing.T) { fieldManagers(t, c) })
	t.Run("the webhook comes back into the CRD", func(t *testing.T) { repaired(t, c) })
	t.Run("the admission webhooks of v1 are asked for v2", func(t *testing.T) { admissionOfV1(t, c) })
}

func validation(t *testing.T, c *versionstest.Cluster) {
	for name, test := range map[string]struct {
		web  client.Object
		want string
	}{
		"v1: port": {&webv1.MyWeb{ObjectMeta: meta("a"), Spec: webv1.MyWebSpec{Image: "nginx",
			NodePortNumber: new(int32(80))}}, "spec.nodePortNumber: Invalid value"},
		"v2: port": {&webv2.MyWeb{ObjectMeta: meta("a"), Spec: webv2.MyWebSpec{Image: "nginx",
			NodePort: new(int32(80))}}, "spec.nodePort: Invalid value"},
		"v1: image": {&webv1.MyWeb{ObjectMeta: meta("a"), Spec: webv1.MyWebSpec{Image: "no image"}},
			"spec.image: Invalid value"},
		"v2: image": {&webv2.MyWeb{ObjectMeta: meta("a"), Spec: webv2.MyWebSpec{Image: "no image"}},
			"spec.image: Invalid value"},
		"v1: page": {&webv1.MyWeb{ObjectMeta: meta("a"), Spec: webv1.MyWebSpec{Image: "nginx",
			PageContentHTML: new(strings.Repeat("x", 40001))}}, "spec.pageContentHtml: Too long"},
		"v2: page": {&webv2.MyWeb{ObjectMeta: meta("a"), Spec: webv2.MyWebSpec{Image: "nginx",
			Page: &webv2.Page{HTML: strings.Repeat("x", 40001)}}}, "spec.page.html: Too long"},
		"v2: description": {&webv2.MyWeb{ObjectMeta: meta("a"), Spec: webv2.MyWebSpec{Image: "nginx",
			Description: strings.Repeat("x", 201)}}, "spec.description: Too long"},
		"v1: name": {&webv1.MyWeb{ObjectMeta: meta("9"), Spec: webv1.MyWebSpec{Image: "nginx"}}, "metadata.name must"},
		"v2: name": {&webv2.MyWeb{ObjectMeta: meta("9"), Spec: webv2.MyWebSpec{Image: "nginx"}}, "metadata.name must"},
	} {
		if err := c.Create(t.Context(), test.web); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %s", name, err, test.want)
		}
	}
}

// admissionOfV1: their rule names v1, and matchPolicy Equivalent has the API server convert.
func admissionOfV1(t *testing.T, c *versionstest.Cluster) {
	hooks, err := webhook.New(c.Config, webhook.Options{Enabled: new(true), Port: testenv.FreePort(t)})
	must(t, err)
	mgr, err := ctrl.NewManager(c.Config, ctrl.Options{WebhookServer: hooks.Server(),
		Metrics: metricsserver.Options{BindAddress: "0"}})
	must(t, err)
	must(t, hooks.SetupWithManager(mgr))
	testenv.Run(t, mgr.Start)

	gomega.NewWithT(t).Eventually(func(g gomega.Gomega) {
		web := &webv2.MyWeb{ObjectMeta: meta("pageless"), Spec: webv2.MyWebSpec{Image: "nginx:1.29"}}
		g.Expect(c.Create(t.Context(), web, client.DryRunAll)).To(gomega.Succeed())
		g.Expect(web.Spec.Page).NotTo(gomega.BeNil(), "the default page of v1")
		g.Expect(web.Spec.Page.HTML).To(gomega.ContainSubstring("<h1>pageless</h1>"))
	}, "30s", "50ms").Should(gomega.Succeed())
	must(t, c.Create(t.Context(), &webv2.MyWeb{ObjectMeta: meta("first"),
		Spec: webv2.MyWebSpec{Image: "nginx:1.29", NodePort: new(int32(30200))}}))
	gomega.NewWithT(t).Eventually(func(g gomega.Gomega) { // the cache of the webhook is a moment behind
		err := c.Create(t.Context(), &webv2.MyWeb{ObjectMeta: meta("second"),
			Spec: webv2.MyWebSpec{Image: "nginx:1.29", NodePort: new(int32(30200))}}, client.DryRunAll)
		g.Expect(err).To(gomega.MatchError(gomega.ContainSubstring("MyWeb default/first has this port")))
	}, "10s", "50ms").Should(gomega.Succeed())
}

// fieldManagers: one client applies in v1, another in v2, and neither takes a renamed field from the other unnoticed.
func fieldManagers(t *testing.T, c *versionstest.Cluster) {
	apply := func(manager, text string) error {
		web := &unstructured.Unstructured{}
		must(t, web.UnmarshalJSON([]byte(text)))
		return c.Client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(web), client.FieldOwner(manager))
	}
	must(t, apply("new", `{"apiVersion":"operator.k8s-summit.org/v2","kind":"MyWeb","metadata":{"name":"applied",
		"namespace":"default"},"spec":{"image":"nginx","page":{"html":"new"}}}`))
	err := apply("old", `{"apiVersion":"operator.k8s-summit.org/v1","kind":"MyWeb","metadata":{"name":"applied",
		"namespace":"default"},"spec":{"image":"nginx","pageContentHtml":"old"}}`)
	if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), `conflict with "new"`) {
		t.Errorf("got %v", err)
	}
}

// repaired: another client replaces the CRD, and its manifest has no authority, or no webhook.
func repaired(t *testing.T, c *versionstest.Cluster) {
	authority := func() []byte {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		must(t, c.Get(t.Context(), client.ObjectKey{Name: server.CRD}, crd))
		if hook := crd.Spec.Conversion.Webhook; hook != nil {
			return hook.ClientConfig.CABundle
		}
		return nil
	}
	want := authority()
	conversion := func(patch string) {
		c.Kubectl(t, "patch", "crd", server.CRD, "--type=merge", "-p", `{"spec":{"conversion":`+patch+`}}`)
	}
	another, _, err := certutil.GenerateSelfSignedCertKey("another", nil, nil)
	must(t, err)
	for _, step := range []struct {
		name string
		do   func()
	}{
		{"replaced", func() { c.Replace(t, "2-store") }},
		{"without a webhook", func() { conversion(`{"strategy":"None","webhook":null}`) }},
		{"with another authority", func() {
			conversion(fmt.Sprintf(`{"webhook":{"clientConfig":{"caBundle":"%s"}}}`, base64.StdEncoding.EncodeToString(another)))
		}},
	} {
		step.do()
		gomega.NewWithT(t).Eventually(authority, "30s", "20ms").Should(gomega.Equal(want), step.name)
		c.AwaitConversion(t)
	}
}
