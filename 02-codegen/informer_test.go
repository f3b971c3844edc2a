package codegen_test

import (
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/onsi/gomega"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"

	"example.com/operator-workshop/02-codegen/internal/testenv"
	webv1 "example.com/operator-workshop/02-codegen/pkg/apis/myweb/v1"
	"example.com/operator-workshop/02-codegen/pkg/generated/clientset/versioned"
	"example.com/operator-workshop/02-codegen/pkg/generated/informers/externalversions"
	informerv1 "example.com/operator-workshop/02-codegen/pkg/generated/informers/externalversions/myweb/v1"
)

// recorder keeps lines that many goroutines add.
type recorder struct {
	mu    sync.Mutex
	lines []string
}

func (r *recorder) add(line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, line)
}

func (r *recorder) seen() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.lines)
}

// events is a handler that records each call.
func (r *recorder) events() informerv1.MyWebHandlerFuncs {
	return informerv1.MyWebHandlerFuncs{
		AddFunc:    func(web *webv1.MyWeb) { r.add("add " + web.Name) },
		UpdateFunc: func(_, web *webv1.MyWeb) { r.add("update " + web.Name) },
		DeleteFunc: func(deleted informerv1.DeletedMyWeb) { r.add("delete " + deleted.GetName()) },
	}
}

// newFactory makes a factory for one namespace. It ends with the test.
func newFactory(t *testing.T, client versioned.Interface, namespace string) externalversions.SharedInformerFactory {
	t.Helper()
	factory := externalversions.NewSharedInformerFactoryWithOptions(client, 0, externalversions.WithNamespace(namespace))
	t.Cleanup(factory.Shutdown) // t.Context() has ended by then
	return factory
}

// start starts the factory's informers and waits until their caches have synced.
func start(t *testing.T, factory externalversions.SharedInformerFactory) {
	t.Helper()
	factory.StartWithContext(t.Context())
	testenv.Must(t, factory.WaitForCacheSyncWithContext(t.Context()).AsError())
}

// The indexer is the cache, the lister a typed reader of it; both follow the API server.
func TestInformerListerAndIndexerAgree(t *testing.T) {
	g := gomega.NewWithT(t)
	client, namespace := newClientset(t), newNamespace(t)
	webs := client.OperatorV1().MyWebs(namespace)
	tiers(t, webs)

	factory := newFactory(t, client, namespace)
	informer := informerv1.ToTypedMyWebInformer(factory.Operator().V1().MyWebs())
	byImage := informerv1.MyWebIndexers{"image": func(web *webv1.MyWeb) ([]string, error) {
		return []string{web.Spec.Image}, nil
	}}
	testenv.Must(t, informer.TypedInformer().AddTypedIndexers(byImage))
	recorded := &recorder{}
	if _, err := informer.TypedInformer().AddTypedEventHandler(recorded.events()); err != nil {
		t.Fatal(err)
	}
	start(t, factory)

	web := get(t, webs, "a")
	web.Spec.Image = "httpd"
	if _, err := webs.Update(t.Context(), web, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	testenv.Must(t, webs.Delete(t.Context(), "b", metav1.DeleteOptions{}))
	create(t, webs, newMyWeb("e"))

	g.Eventually(func() []string { // the last event of each
		last := slices.DeleteFunc(recorded.seen(), func(s string) bool { return s == "add a" || s == "add b" })
		slices.Sort(last)
		return last
	}, 10*time.Second).Should(gomega.Equal([]string{"add c", "add d", "add e", "delete b", "update a"}))

	truth, err := webs.List(t.Context(), metav1.ListOptions{})
	testenv.Must(t, err)
	listed, err := informer.Lister().MyWebs(namespace).List(labels.Everything())
	testenv.Must(t, err)
	var indexed []*webv1.MyWeb
	for _, image := range []string{"nginx", "httpd"} {
		found, err := informer.TypedInformer().GetTypedIndexer().ByTypedIndex("image", image)
		testenv.Must(t, err)
		indexed = append(indexed, found...)
	}
	sameAsStored(t, truth.Items, map[string][]*webv1.MyWeb{"lister": listed, "indexer": indexed})
	if len(listed) != 4 || len(indexed) != 4 {
		t.Errorf("%d listed, %d indexed, want 4 each", len(listed), len(indexed))
	}
	if last, same := indexed[len(indexed)-1], slices.Contains(listed, indexed[len(indexed)-1]); last.Name != "a" || !same {
		t.Errorf("by image httpd: %s, the same object as the lister's: %v; want a, true", last.Name, same)
	}
}

// sameAsStored compares the objects in caches with the objects in the API server.
func sameAsStored(t *testing.T, stored []webv1.MyWeb, caches map[string][]*webv1.MyWeb) {
	t.Helper()
	truth := map[string]*webv1.MyWeb{}
	for i := range stored {
		truth[stored[i].Name] = &stored[i]
	}
	for name, got := range caches {
		cached := map[string]*webv1.MyWeb{}
		for _, web := range got {
			cached[web.Name] = web
		}
		noKind := cmpopts.IgnoreTypes(metav1.TypeMeta{}) // the Go type states the kind: decoders may leave the field empty
		if diff := cmp.Diff(truth, cached, noKind); diff != "" {
			t.Errorf("%s (-API server +cache):\n%s", name, diff)
		}
	}
}

// counting makes a client that counts its requests by kind: list, watch.
func counting(t *testing.T) (versioned.Interface, *recorder) {
	t.Helper()
	sent := &recorder{}
	cfg := rest.CopyConfig(server)
	cfg.Wrap(transport.WrapperFunc(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.URL.Query().Get("watch") != "" {
				sent.add("watch")
			} else {
				sent.add("list")
			}
			return next.RoundTrip(r)
		})
	}))
	client, err := versioned.NewForConfig(cfg)
	testenv.Must(t, err)
	return client, sent
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestAFactorySharesOneCacheAndOneWatch(t *testing.T) {
	namespace := newNamespace(t)
	create(t, newClientset(t).OperatorV1().MyWebs(namespace), newMyWeb("shop"))
	client, sent := counting(t)
	factory := newFactory(t, client, namespace)

	one, another := &recorder{}, &recorder{}
	for _, recorded := range []*recorder{one, another} {
		informer := informerv1.ToTypedMyWebInformer(factory.Operator().V1().MyWebs())
		if _, err := informer.TypedInformer().AddTypedEventHandler(recorded.events()); err != nil {
			t.Fatal(err)
		}
	}
	start(t, factory)

	gomega.NewWithT(t).Eventually(func() []string { return append(one.seen(), another.seen()...) }, 10*time.Second).
		Should(gomega.Equal([]string{"add shop", "add shop"}))
	for range 100 { // reads of a lister are reads of memory
		if _, err := factory.Operator().V1().MyWebs().Lister().MyWebs(namespace).Get("shop"); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"watch"}, sent.seen()); diff != "" {
		t.Errorf("requests of two users (-want +got):\n%s", diff)
	}
}
