package webhook

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/gomega"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
	"example.com/operator-workshop/04-controller-runtime/internal/testenv"
)

// These tests let a real API server call the webhooks, as it calls a process outside a cluster: by URL.

var (
	config  *rest.Config
	scheme  = runtime.NewScheme()
	pinned  = "nginx:1.29"
	said    = &warnings{}
	admin   client.Client // its warnings are in said
	shipped = filepath.Join("..", "..", "config")
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(zap.New())
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(webv1.AddToScheme(scheme))
	cfg, stop, err := testenv.StartAPIServer(filepath.Join(shipped, "crd"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	config = cfg
	heard := rest.CopyConfig(cfg)
	heard.WarningHandlerWithContext = said
	if admin, err = client.New(heard, client.Options{Scheme: scheme}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if err := stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
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

// since returns what was said during f.
func (w *warnings) since(f func()) []string {
	w.mu.Lock()
	w.all = nil
	w.mu.Unlock()
	f()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.all
}

// freePort returns a port on loopback that nobody listens on.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// startManager runs a manager with the webhooks until the test ends, or until stop is called.
func startManager(t *testing.T, cfg *rest.Config, hooks *Webhooks, setup func(ctrl.Manager) error) (stop func()) {
	t.Helper()
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme:                  scheme,
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
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the manager ended with %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// serve runs the webhooks as a process outside a cluster does, until the API server asks them.
func serve(t *testing.T) (stop func()) {
	t.Helper()
	hooks, err := New(config, Options{Enabled: new(true), Port: freePort(t)})
	if err != nil {
		t.Fatal(err)
	}
	stop = startManager(t, config, hooks, hooks.SetupWithManager)
	eventually(t, func(g gomega.Gomega) {
		web := myweb("default", "asked")
		web.Spec.Image = "nginx"
		g.Expect(said.since(func() { g.Expect(admin.Create(t.Context(), web, client.DryRunAll)).To(gomega.Succeed()) })).NotTo(gomega.BeEmpty())
		g.Expect(web.Spec.PageContentHTML).NotTo(gomega.BeNil())
	})
	return stop
}

func eventually(t *testing.T, f func(gomega.Gomega)) {
	t.Helper()
	gomega.NewWithT(t).Eventually(f, "30s", "50ms").Should(gomega.Succeed())
}

// namespace makes one for a test.
func namespace(t *testing.T) string {
	t.Helper()
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "web-"}}
	must(t, admin.Create(t.Context(), n))
	return n.Name
}

func myweb(namespace, name string, change ...func(*webv1.MyWeb)) *webv1.MyWeb {
	web := &webv1.MyWeb{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: webv1.MyWebSpec{Image: pinned}}
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

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// refused asserts that err is a refusal of spec.nodePortNumber that names the given MyWeb.
func refused(g gomega.Gomega, err error, holder *webv1.MyWeb) {
	g.Expect(apierrors.IsInvalid(err)).To(gomega.BeTrue(), "got %v", err)
	cause, _ := apierrors.StatusCause(err, metav1.CauseTypeFieldValueInvalid)
	g.Expect(cause.Field).To(gomega.Equal("spec.nodePortNumber"))
	g.Expect(cause.Message).To(gomega.ContainSubstring("MyWeb " + client.ObjectKeyFromObject(holder).String() + " has this port"))
	g.Expect(err.Error()).To(gomega.ContainSubstring("spec.nodePortNumber"))
}

func TestATakenNodePortIsRefused(t *testing.T) {
	serve(t)
	g := gomega.NewWithT(t)
	first := create(t, myweb(namespace(t), "first", port(30500)))
	elsewhere := namespace(t)
	second := func(n int32) error {
		return admin.Create(t.Context(), myweb(elsewhere, "second", port(n)), client.DryRunAll)
	}
	eventually(t, func(g gomega.Gomega) { refused(g, second(30500), first) }) // the cache is a moment behind
	g.Expect(second(30501)).To(gomega.Succeed(), "a free port")

	third := create(t, myweb(elsewhere, "third", port(30502)))
	third.Spec.NodePortNumber = new(int32(30500))
	refused(g, admin.Update(t.Context(), third), first)
	third.Spec.NodePortNumber = nil
	g.Expect(admin.Update(t.Context(), third)).To(gomega.Succeed(), "gave its port up")
	third.Status.NodePort = 30502 // as the operator tells: the port is kept
	must(t, admin.Status().Update(t.Context(), third))
	eventually(t, func(g gomega.Gomega) { refused(g, second(30502), third) })
	third.Spec.NodePortNumber = new(int32(30502))
	g.Expect(admin.Update(t.Context(), third)).To(gomega.Succeed(), "asked for what it has")

	must(t, admin.Delete(t.Context(), first))
	eventually(t, func(g gomega.Gomega) { g.Expect(second(30500)).To(gomega.Succeed(), "the port is free again") })
	again := myweb(first.Namespace, first.Name, port(30500))
	g.Expect(admin.Create(t.Context(), again)).To(gomega.Succeed(), "the same name at once")
	must(t, admin.Delete(t.Context(), again))
}

func TestWhatCollidesAlreadyStaysEditable(t *testing.T) {
	ns := namespace(t)
	create(t, myweb(ns, "one", port(30510))) // no webhook yet
	two := create(t, myweb(ns, "two", port(30510), func(web *webv1.MyWeb) { web.Finalizers = []string{"example.com/wait"} }))
	serve(t)
	eventually(t, func(g gomega.Gomega) {
		g.Expect(admin.Create(t.Context(), myweb(ns, "three", port(30510)), client.DryRunAll)).NotTo(gomega.Succeed())
	})
	for name, change := range map[string]func(){
		"a label":   func() { two.Labels = map[string]string{"a": "b"} },
		"replicas":  func() { two.Spec.Replicas = new(int32(3)) },
		"the image": func() { two.Spec.Image = "nginx:1.30" },
		"the page":  func() { two.Spec.PageContentHTML = new("<p>two</p>") },
	} {
		change()
		if err := admin.Update(t.Context(), two); err != nil {
			t.Errorf("%s could not be changed: %v", name, err)
		}
	}
	two.Status.ReadyReplicas = 1
	must(t, admin.Status().Update(t.Context(), two))

	must(t, admin.Delete(t.Context(), two))
	must(t, admin.Get(t.Context(), client.ObjectKeyFromObject(two), two))
	two.Spec.NodePortNumber = nil
	must(t, admin.Update(t.Context(), two))
	two.Spec.NodePortNumber = new(int32(30510))
	if err := admin.Update(t.Context(), two); err != nil {
		t.Errorf("a MyWeb that is being deleted is nobody's business: %v", err)
	}
	two.Finalizers = nil
	must(t, admin.Update(t.Context(), two))
}

func TestWarningsReachTheClient(t *testing.T) {
	serve(t)
	ns := namespace(t)
	web := myweb(ns, "web")
	for _, step := range []struct {
		name, want string
		do         func() error
	}{
		{"created with a tag", "", func() error { return admin.Create(t.Context(), web) }},
		{"the tag taken away", "neither tag nor digest", func() error { web.Spec.Image = "registry:5000/nginx"; return admin.Update(t.Context(), web) }},
		{"something else changed", "", func() error { web.Spec.Replicas = new(int32(2)); return admin.Update(t.Context(), web) }},
		{"latest", "the tag latest", func() error { web.Spec.Image = "nginx:latest"; return admin.Update(t.Context(), web) }},
		{"a dry run", "neither tag nor digest", func() error {
			return admin.Create(t.Context(), myweb(ns, "dry", func(w *webv1.MyWeb) { w.Spec.Image = "nginx" }), client.DryRunAll)
		}},
		{"deleted", "", func() error { return admin.Delete(t.Context(), web) }},
	} {
		got := said.since(func() {
			if err := step.do(); err != nil {
				t.Fatalf("%s: %v", step.name, err)
			}
		})
		if step.want == "" && len(got) != 0 || step.want != "" && (len(got) != 1 || !strings.Contains(got[0], step.want)) {
			t.Errorf("%s: the client heard %q, want %q", step.name, got, step.want)
		}
	}
}

func TestAMyWebWithoutPageGetsOne(t *testing.T) {
	ns := namespace(t)
	old := create(t, myweb(ns, "old")) // no webhook yet
	serve(t)
	g := gomega.NewWithT(t)

	web := create(t, myweb(ns, "web"))
	g.Expect(*web.Spec.PageContentHTML).To(gomega.ContainSubstring("<h1>web</h1>"))
	web.Spec.PageContentHTML = nil
	must(t, admin.Update(t.Context(), web))
	g.Expect(*web.Spec.PageContentHTML).To(gomega.ContainSubstring("<h1>web</h1>"), "the page was taken away")

	empty := create(t, myweb(ns, "empty", page("")))
	g.Expect(*empty.Spec.PageContentHTML).To(gomega.BeEmpty(), "the empty page is a choice")
	empty.Spec.Replicas = new(int32(2))
	must(t, admin.Update(t.Context(), empty))
	g.Expect(*empty.Spec.PageContentHTML).To(gomega.BeEmpty())

	old.Labels = map[string]string{"a": "b"}
	must(t, admin.Update(t.Context(), old))
	g.Expect(old.Spec.PageContentHTML).To(gomega.BeNil(), "an unrelated edit must not roll the pods")

	generated := myweb(ns, "")
	generated.GenerateName = "blog-"
	create(t, generated)
	g.Expect(*generated.Spec.PageContentHTML).To(gomega.ContainSubstring("<h1>blog-…</h1>"))
}

func TestApplyingTheSameAgainChangesNothing(t *testing.T) {
	serve(t)
	ns := namespace(t)
	apply := func() string {
		web := myweb(ns, "applied")
		u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(web)
		must(t, err)
		delete(u, "status")
		u["apiVersion"], u["kind"] = webv1.SchemeGroupVersion.String(), "MyWeb"
		object := &unstructured.Unstructured{Object: u}
		must(t, admin.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("somebody")))
		must(t, admin.Get(t.Context(), client.ObjectKeyFromObject(web), web))
		if web.Spec.PageContentHTML == nil {
			t.Error("no page")
		}
		return web.ResourceVersion
	}
	first := apply()
	// Longer than a second: a change of managed fields alone shows in their time, which has seconds.
	gomega.NewWithT(t).Consistently(apply, "1500ms", "100ms").Should(gomega.Equal(first))
}

// TestNobodyAnswers holds the shipped failure policies against a port where every call breaks off.
func TestNobodyAnswers(t *testing.T) {
	ns := namespace(t)
	web := create(t, myweb(ns, "web", page("x"), port(30520)))
	calls := &atomic.Int64{}
	installShipped(t, "https://"+breakOff(t, calls))
	eventually(t, func(g gomega.Gomega) {
		err := admin.Create(t.Context(), myweb(ns, "other"), client.DryRunAll)
		g.Expect(apierrors.IsInternalError(err)).To(gomega.BeTrue(), "a MyWeb without page must wait: %v", err)
		g.Expect(err.Error()).To(gomega.ContainSubstring("failed calling webhook"))
	})
	eventually(t, func(g gomega.Gomega) { // with a page only the validating webhook is called
		before := calls.Load()
		g.Expect(admin.Create(t.Context(), myweb(ns, "another", page("y"), port(30520)), client.DryRunAll)).To(gomega.Succeed())
		g.Expect(calls.Load()).To(gomega.BeNumerically(">", before), "the webhook was not called")
	})

	web.Spec.NodePortNumber, web.Spec.Image = nil, "nginx"
	must(t, admin.Update(t.Context(), web))
	before := calls.Load()
	web.Spec.Replicas = new(int32(2))
	must(t, admin.Update(t.Context(), web))
	web.Status.ReadyReplicas = 1
	must(t, admin.Status().Update(t.Context(), web))
	must(t, admin.Delete(t.Context(), web))
	if calls.Load() != before {
		t.Error("requests that do not matter were sent to the webhooks")
	}
}

// breakOff returns an address where connections are counted and closed.
func breakOff(t *testing.T, calls *atomic.Int64) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			calls.Add(1)
			conn.Close()
		}
	}()
	return l.Addr().String()
}

// TestAKilledProcessRefusesNobody is about the policies of the local lane: nobody removes what a killed
// process installed.
func TestAKilledProcessRefusesNobody(t *testing.T) {
	ns := namespace(t)
	configurations, err := localConfigurations(fmt.Sprintf("https://127.0.0.1:%d", freePort(t)), nil)
	must(t, err)
	must(t, install(t.Context(), admin, configurations))
	t.Cleanup(func() { must(t, remove(context.Background(), admin, configurations)) })
	gomega.NewWithT(t).Consistently(func() error {
		return admin.Create(t.Context(), myweb(ns, "web"), client.DryRunAll)
	}, "2s").Should(gomega.Succeed())

	serve(t)() // takes over, and removes at the end
	if left := installed(t); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestStoppingRemovesTheConfigurations(t *testing.T) {
	stop := serve(t)
	want := []string{"mutating/" + localName, "validating/" + localName}
	if got := installed(t); !slices.Equal(got, want) {
		t.Errorf("installed %v, want %v", got, want)
	}
	stop()
	if got := installed(t); len(got) != 0 {
		t.Errorf("left behind: %v", got)
	}
}

func TestWhatSomebodyElseChangedStays(t *testing.T) {
	first, err := localConfigurations("https://127.0.0.1:1", nil)
	must(t, err)
	must(t, install(t.Context(), admin, first))
	second, err := localConfigurations("https://127.0.0.1:2", nil)
	must(t, err)
	must(t, install(t.Context(), admin, second))
	must(t, remove(t.Context(), admin, first))
	if got := installed(t); len(got) != 2 {
		t.Errorf("a process removed what another one had taken over; left: %v", got)
	}
	must(t, remove(t.Context(), admin, second))
	if got := installed(t); len(got) != 0 {
		t.Errorf("left behind: %v", got)
	}
}

// installed lists the webhook configurations of the cluster.
func installed(t *testing.T) (names []string) {
	t.Helper()
	mutating, validating := &admissionv1.MutatingWebhookConfigurationList{}, &admissionv1.ValidatingWebhookConfigurationList{}
	must(t, admin.List(t.Context(), mutating))
	must(t, admin.List(t.Context(), validating))
	for _, c := range mutating.Items {
		names = append(names, "mutating/"+c.Name)
	}
	for _, c := range validating.Items {
		names = append(names, "validating/"+c.Name)
	}
	return names
}

func TestOff(t *testing.T) {
	hooks, err := New(config, Options{})
	must(t, err)
	if hooks.Server() != nil {
		t.Error("outside a cluster, webhooks are off unless asked for")
	}
	must(t, hooks.SetupWithManager(nil))
}

func TestWhatCannotBeServedIsNamed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	for name, test := range map[string]struct {
		options Options
		want    string
	}{
		"an address that nobody can call": {Options{Host: "0.0.0.0"}, "--webhook-host"},
		"a port that is in use":           {Options{Port: l.Addr().(*net.TCPAddr).Port}, "--webhook-port"},
	} {
		test.options.Enabled = new(true)
		if _, err := New(config, test.options); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWhoMayNotInstallIsTold(t *testing.T) {
	operator := asOperator(t) // which may in a cluster what it needs there
	hooks, err := New(operator, Options{Enabled: new(true), Port: freePort(t)})
	must(t, err)
	mgr, err := ctrl.NewManager(operator, ctrl.Options{Scheme: scheme, Metrics: server.Options{BindAddress: "0"}, WebhookServer: hooks.Server()})
	must(t, err)
	must(t, hooks.SetupWithManager(mgr))
	if err := mgr.Start(t.Context()); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "run with --webhooks=false") {
		t.Errorf("got %v", err)
	}
}

func TestFlags(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want *bool
	}{
		"nothing said": {nil, nil},
		"on":           {[]string{"--webhooks"}, new(true)},
		"off":          {[]string{"--webhooks=false"}, new(false)},
	} {
		var o Options
		flags := flag.NewFlagSet("", flag.ContinueOnError)
		o.Bind(flags)
		must(t, flags.Parse(test.args))
		if diff := cmp.Diff(Options{Enabled: test.want, Port: 9443}, o); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
