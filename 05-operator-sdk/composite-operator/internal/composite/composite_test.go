package composite_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/example/composite-operator/hook"
	"github.com/example/composite-operator/internal/composite"
	"github.com/example/composite-operator/internal/testenv"
)

// apiServer serves all tests; each test has its own namespace.
var apiServer *rest.Config

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(testenv.Main(m, func(cfg *rest.Config) error { apiServer = cfg; return nil }, "../../config/crd"))
}

// A setup is a controller on a real API server, with a hook that a test may replace.
type setup struct {
	client.Client
	namespace string

	mu     sync.Mutex
	writes []string // of the controller
	answer func(request []byte) (status int, response any)
}

func (s *setup) wrote() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string{}, s.writes...)
}

// RoundTrip implements http.RoundTripper through a function.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// start runs the controller. answer is the hook; nil means the hook of this operator.
func start(t *testing.T, answer func([]byte) (int, any)) *setup {
	t.Helper()
	s := &setup{answer: answer, namespace: strings.ToLower(t.Name())}
	if s.answer == nil {
		s.answer = ours
	}
	all, err := client.New(apiServer, client.Options{Scheme: scheme.Scheme})
	testenv.Must(t, err)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}
	testenv.Must(t, all.Create(t.Context(), namespace))
	s.Client = client.NewNamespacedClient(all, s.namespace)
	recorded := rest.CopyConfig(apiServer)
	recorded.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(r *http.Request) (*http.Response, error) {
			if r.Method != http.MethodGet {
				s.mu.Lock()
				s.writes = append(s.writes, r.Method+" "+r.URL.Path)
				s.mu.Unlock()
			}
			return next.RoundTrip(r)
		})
	})
	s.run(t, recorded)
	return s
}

func ours(body []byte) (int, any) {
	var request hook.Request
	if err := json.Unmarshal(body, &request); err != nil {
		return http.StatusBadRequest, err.Error()
	}
	return http.StatusOK, hook.Sync(request, time.Now())
}

func (s *setup) run(t *testing.T, cfg *rest.Config) {
	t.Helper()
	hooks := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body json.RawMessage
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		s.mu.Lock()
		answer := s.answer
		s.mu.Unlock()
		status, response := answer(body)
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(response)
	}))
	t.Cleanup(hooks.Close)
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{Scheme: runtime.NewScheme(),
		Client: client.Options{Cache: &client.CacheOptions{Unstructured: true,
			EnableReadYourWritesConsistency: new(true)}},
		Cache:   cache.Options{DefaultNamespaces: map[string]cache.Config{s.namespace: {}}},
		Metrics: server.Options{BindAddress: "0"}})
	testenv.Must(t, err)
	config, err := composite.ReadConfig("../../config/compositecontroller.yaml")
	testenv.Must(t, err)
	config.Metadata.Name = s.namespace // a process can use a controller's name only once
	r, err := composite.New(mgr.GetClient(), config)
	testenv.Must(t, err)
	r.URL = hooks.URL
	ctx, cancel := context.WithCancel(t.Context())
	testenv.Must(t, r.SetupWithManager(ctx, mgr, 2))
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func (s *setup) create(t *testing.T, name string) *unstructured.Unstructured {
	t.Helper()
	web := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "operator.k8s-summit.org/v1", "kind": "MyWeb",
		"metadata": map[string]any{"name": name},
		"spec":     map[string]any{"image": "nginx", "pageContentHtml": "<h1>Hello</h1>"},
	}}
	testenv.Must(t, s.Create(t.Context(), web))
	return web
}

func key(name string) client.ObjectKey { return client.ObjectKey{Name: name} }

// serve plays the Deployment controller and the nodes.
func (s *setup) serve(ctx context.Context, g Gomega, name string) {
	d := &appsv1.Deployment{}
	g.Expect(s.Get(ctx, key(name), d)).To(Succeed())
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: 1, UpdatedReplicas: 1,
		ReadyReplicas: 1, AvailableReplicas: 1}
	g.Expect(s.Status().Update(ctx, d)).To(Succeed())
}

func completed(web *unstructured.Unstructured) bool {
	done, _, _ := unstructured.NestedBool(web.Object, "status", "completed")
	observed, _, _ := unstructured.NestedInt64(web.Object, "status", "observedGeneration")
	return done && observed == web.GetGeneration()
}

func TestAMyWebIsServed(t *testing.T) {
	g, s := NewWithT(t), start(t, nil)
	web := s.create(t, "web")
	g.Eventually(func(g Gomega) { s.serve(t.Context(), g, "web") }, "30s").Should(Succeed())
	g.Eventually(func(g Gomega) {
		g.Expect(s.Get(t.Context(), key("web"), web)).To(Succeed())
		g.Expect(completed(web)).To(BeTrue(), "%v", web.Object["status"])
	}, "30s").Should(Succeed())
	for _, child := range []client.Object{&corev1.ConfigMap{}, &appsv1.Deployment{}, &corev1.Service{}} {
		g.Expect(s.Get(t.Context(), key("web"), child)).To(Succeed())
		g.Expect(metav1.IsControlledBy(child, web)).To(BeTrue(), "%T", child)
	}
	writes := s.wrote()
	states := slices.IndexFunc(writes, func(w string) bool { return strings.HasSuffix(w, "/status") })
	g.Expect(states).To(Equal(3), "three children first: %q", writes)
	g.Expect(writes[states:]).To(HaveEach(HaveSuffix("/mywebs/web/status")))
	g.Expect(len(writes)).To(BeNumerically("<=", 7), "a state for each step that was observed: %q", writes)
	g.Consistently(s.wrote, "1s").Should(Equal(writes), "in steady state nothing is written")

	t.Log("an edited child is restored, an added field stays")
	page := &corev1.ConfigMap{}
	g.Expect(s.Get(t.Context(), key("web"), page)).To(Succeed())
	page.Data["index.html"], page.Labels["of-others"] = "vandalism", "stays"
	g.Expect(s.Update(t.Context(), page)).To(Succeed())
	g.Eventually(func(g Gomega) {
		g.Expect(s.Get(t.Context(), key("web"), page)).To(Succeed())
		g.Expect(page.Data).To(HaveKeyWithValue("index.html", "<h1>Hello</h1>"))
		g.Expect(page.Labels).To(HaveKeyWithValue("of-others", "stays"))
	}, "30s").Should(Succeed())
}

func TestAChildThatTheHookDropsIsDeleted(t *testing.T) {
	g, s := NewWithT(t), start(t, nil)
	web := s.create(t, "web")
	g.Eventually(func() error { return s.Get(t.Context(), key("web"), &corev1.Service{}) }, "30s").Should(Succeed())
	s.mu.Lock()
	s.answer = func(body []byte) (int, any) {
		status, response := ours(body)
		dropped := response.(hook.Response)
		dropped.Children = dropped.Children[:2]
		return status, dropped
	}
	s.mu.Unlock()
	g.Expect(s.Patch(t.Context(), web, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":2}}`)))).
		To(Succeed())
	g.Eventually(func() error { return s.Get(t.Context(), key("web"), &corev1.Service{}) }, "30s").ShouldNot(Succeed())
	g.Expect(s.Get(t.Context(), key("web"), &corev1.ConfigMap{})).To(Succeed())
}

func TestAHookThatFailsIsAskedAgain(t *testing.T) {
	g := NewWithT(t)
	var mu sync.Mutex
	asked := 0
	s := start(t, func(body []byte) (int, any) {
		mu.Lock()
		defer mu.Unlock()
		if asked++; asked < 4 {
			return http.StatusInternalServerError, "not yet"
		}
		return ours(body)
	})
	s.create(t, "web")
	g.Eventually(func() error { return s.Get(t.Context(), key("web"), &corev1.Service{}) }, "30s").Should(Succeed())
}
