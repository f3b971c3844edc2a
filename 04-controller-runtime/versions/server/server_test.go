package server_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
	"example.com/operator-workshop/04-controller-runtime/internal/operator"
	"example.com/operator-workshop/04-controller-runtime/internal/testenv"
	"example.com/operator-workshop/04-controller-runtime/internal/webhook"
	webv2 "example.com/operator-workshop/04-controller-runtime/versions/api/v2"
	"example.com/operator-workshop/04-controller-runtime/versions/convert"
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

func equal(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// TestConversion has one API server: its parts are in the order of a migration.
func TestConversion(t *testing.T) {
	c := versionstest.Start(t)
	err := server.Run(t.Context(), c.Config, server.Options{Host: "127.0.0.1", Port: c.Port})
	if !apierrors.IsNotFound(err) || !strings.Contains(err.Error(), "install the conversion webhook in the CRD") {
		t.Errorf("without a CRD: got %v", err)
	}
	c.Install(t, "1-serve")
	stop := c.Convert(t)
	for _, overlay := range []string{"1-serve", "2-store"} {
		c.Install(t, overlay)
		t.Run("both versions with "+overlay, func(t *testing.T) { bothVersions(t, c, overlay[2:]) })
	}
	t.Run("only v1 is deprecated", func(t *testing.T) { onlyV1IsDeprecated(t, c) })
	t.Run("each version is validated by its own schema", func(t *testing.T) { validation(t, c) })
	t.Run("a watch of v1 sees what v2 writes", func(t *testing.T) { watchOfV1(t, c) })
	t.Run("fields keep their managers", func(t *testing.T) { fieldManagers(t, c) })
	t.Run("the admission webhooks of v1 are asked for v2", func(t *testing.T) { admissionOfV1(t, c) })
	t.Run("the finished operator serves v2", func(t *testing.T) { finishedOperator(t, c) })
	t.Run("without the webhook", func(t *testing.T) { withoutTheWebhook(t, c, stop) })
}

// bothVersions: clients cannot see which version etcd has.
func bothVersions(t *testing.T, c *versionstest.Cluster, stored string) {
	old := &webv1.MyWeb{ObjectMeta: meta(stored + "-old"), Spec: webv1.MyWebSpec{Image: "nginx:1.29",
		NodePortNumber: new(int32(30100)), PageContentHTML: new("<p>")}}
	must(t, c.Create(t.Context(), old))
	web := &webv2.MyWeb{}
	must(t, c.Get(t.Context(), client.ObjectKeyFromObject(old), web))
	equal(t, "v1 read as v2", webv2.MyWebSpec{Image: "nginx:1.29", NodePort: new(int32(30100)),
		Page: &webv2.Page{HTML: "<p>"}, Replicas: new(int32(1))}, web.Spec)

	web = &webv2.MyWeb{ObjectMeta: meta(stored + "-new"), Spec: webv2.MyWebSpec{Image: "nginx:1.29",
		NodePort: new(int32(30100)), Page: &webv2.Page{HTML: ""}, Description: "for visitors"}}
	must(t, c.Create(t.Context(), web))
	old = &webv1.MyWeb{}
	must(t, c.Get(t.Context(), client.ObjectKeyFromObject(web), old))
	equal(t, "v2 read as v1", webv1.MyWebSpec{Image: "nginx:1.29", NodePortNumber: new(int32(30100)),
		PageContentHTML: new(""), Replicas: new(int32(1))}, old.Spec)
	equal(t, "annotation", "for visitors", old.Annotations[convert.Description])

	old.Spec.Replicas, old.Spec.NodePortNumber = new(int32(0)), nil
	must(t, c.Update(t.Context(), old))
	old.Status.NodePort = 30111
	must(t, c.Status().Update(t.Context(), old))
	must(t, c.Get(t.Context(), client.ObjectKeyFromObject(web), web))
	equal(t, "v1 wrote, v2 reads", webv2.MyWebSpec{Image: "nginx:1.29", Page: &webv2.Page{HTML: ""},
		Description: "for visitors", Replicas: new(int32(0))}, web.Spec)
	equal(t, "status", webv2.MyWebStatus{NodePort: 30111}, web.Status)

	web.Spec.Description, web.Spec.Page = "", nil
	must(t, c.Update(t.Context(), web))
	must(t, c.Get(t.Context(), client.ObjectKeyFromObject(web), old))
	equal(t, "v2 wrote, v1 reads the page", (*string)(nil), old.Spec.PageContentHTML)
	equal(t, "annotations", map[string]string(nil), old.Annotations)
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
	mgr, err := ctrl.NewManager(c.Config, ctrl.Options{Scheme: c.Scheme(), WebhookServer: hooks.Server(),
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

func watchOfV1(t *testing.T, c *versionstest.Cluster) {
	watcher, err := client.NewWithWatch(c.Config, client.Options{Scheme: c.Scheme()})
	must(t, err)
	events, err := watcher.Watch(t.Context(), &webv1.MyWebList{}, client.MatchingFields{"metadata.name": "watched"})
	must(t, err)
	defer events.Stop()
	next := func(want watch.EventType, page string) {
		t.Helper()
		event := <-events.ResultChan()
		web, ok := event.Object.(*webv1.MyWeb)
		if event.Type != want || !ok || web.Spec.PageContentHTML == nil || *web.Spec.PageContentHTML != page {
			t.Fatalf("got %s %v, want %s with the page %q", event.Type, event.Object, want, page)
		}
	}
	web := &webv2.MyWeb{ObjectMeta: meta("watched"), Spec: webv2.MyWebSpec{Image: "nginx", Page: &webv2.Page{HTML: "one"}}}
	must(t, c.Create(t.Context(), web))
	next(watch.Added, "one")
	web.Spec.Page.HTML = "two"
	must(t, c.Update(t.Context(), web))
	next(watch.Modified, "two")
	must(t, c.Delete(t.Context(), web))
	next(watch.Deleted, "two")
}

func onlyV1IsDeprecated(t *testing.T, c *versionstest.Cluster) {
	c.Warnings.Reset()
	must(t, c.List(t.Context(), &webv2.MyWebList{}))
	equal(t, "warnings of v2", "", c.Warnings.String())
	must(t, c.List(t.Context(), &webv1.MyWebList{}))
	if got := c.Warnings.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "use v2") {
		t.Errorf("warnings of v1: %q", got)
	}
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

// withoutTheWebhook: the API server fails and says why. It does not serve half of an object.
func withoutTheWebhook(t *testing.T, c *versionstest.Cluster, stop func()) {
	web := &webv2.MyWeb{ObjectMeta: meta("unconverted"), Spec: webv2.MyWebSpec{Image: "nginx", Description: "a"}}
	must(t, c.Create(t.Context(), web))
	stop()
	web.Spec.Description = "b"
	must(t, c.Update(t.Context(), web)) // the stored version needs no conversion
	must(t, c.List(t.Context(), &webv2.MyWebList{}))
	old := &webv1.MyWeb{ObjectMeta: meta("other"), Spec: webv1.MyWebSpec{Image: "nginx"}}
	for name, do := range map[string]func() error{
		"create": func() error { return c.Create(t.Context(), old) },
		"get":    func() error { return c.Get(t.Context(), client.ObjectKeyFromObject(web), &webv1.MyWeb{}) },
		"list":   func() error { return c.List(t.Context(), &webv1.MyWebList{}) },
	} {
		gomega.NewWithT(t).Eventually(do, "30s", "100ms").Should(gomega.MatchError(gomega.And(
			gomega.ContainSubstring("conversion webhook for operator.k8s-summit.org/v"),
			gomega.ContainSubstring("connection refused"))), name)
	}

	c.Convert(t) // with another certificate
	must(t, c.Get(t.Context(), client.ObjectKeyFromObject(web), old))
	equal(t, "annotation", "b", old.Annotations[convert.Description])
}

// finishedOperator: it knows v1 only.
func finishedOperator(t *testing.T, c *versionstest.Cluster) {
	var o operator.Options
	o.Manager.Metrics.BindAddress = "0"
	o.Manager.Controller.MaxConcurrentReconciles = 1
	mgr, err := operator.NewManager(c.Config, o)
	must(t, err)
	testenv.Run(t, mgr.Start)
	web := &webv2.MyWeb{ObjectMeta: meta("served"),
		Spec: webv2.MyWebSpec{Image: "nginx", Page: &webv2.Page{HTML: "<p>"}, Description: "for visitors"}}
	must(t, c.Create(t.Context(), web))
	gomega.NewWithT(t).Eventually(func(g gomega.Gomega) {
		page := &corev1.ConfigMap{}
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(web), page)).To(gomega.Succeed())
		g.Expect(page.Data).To(gomega.Equal(map[string]string{"index.html": "<p>"}))
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(web), web)).To(gomega.Succeed())
		g.Expect(web.Status.ObservedGeneration).To(gomega.Equal(web.Generation))
		g.Expect(web.Spec.Description).To(gomega.Equal("for visitors"))
	}, "30s", "50ms").Should(gomega.Succeed())
}
