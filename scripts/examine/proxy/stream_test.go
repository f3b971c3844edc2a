package proxy_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"example.com/operator-workshop/scripts/examine/fixture"
	"example.com/operator-workshop/scripts/examine/ledger"
	"example.com/operator-workshop/scripts/examine/proxy"
	"example.com/operator-workshop/scripts/examine/wire"
)

var watches = ledger.Match{Verbs: []string{wire.Watch}, Resources: []string{"configmaps"}}

// informer fills a cache of ConfigMaps through the proxy.
func (l *lab) informer(contentType string) corelisters.ConfigMapNamespaceLister {
	l.t.Helper()
	factory := informers.NewSharedInformerFactoryWithOptions(l.clientset(l.proxied, contentType), 0,
		informers.WithNamespace(l.namespace))
	configMaps := factory.Core().V1().ConfigMaps()
	configMaps.Informer()
	stop := make(chan struct{})
	factory.Start(stop)
	l.t.Cleanup(func() { // before the proxy is closed
		close(stop)
		factory.Shutdown()
	})
	if !cache.WaitForCacheSync(l.t.Context().Done(), configMaps.Informer().HasSynced) {
		l.t.Fatal("the informer does not fill")
	}
	return configMaps.Lister().ConfigMaps(l.namespace)
}

// sees reports whether a cache has an object.
func sees(lister corelisters.ConfigMapNamespaceLister, name string) func() bool {
	return func() bool {
		_, err := lister.Get(name)
		return err == nil
	}
}

func TestFreeze(t *testing.T) {
	for _, contentType := range []string{protobufType, jsonType} {
		t.Run(contentType[len("application/"):], func(t *testing.T) {
			l := newLab(t)
			lister := l.informer(contentType)
			f := l.proxy.Add(proxy.Rule{Match: watches, Do: proxy.Freeze()})
			if f.Fired() != 1 {
				t.Fatalf("the open watch was frozen %d times", f.Fired())
			}
			l.configMap("a")
			stream := l.proxy.Streams(watches)[0]
			eventually(t, "the event waits in the proxy", func() bool { return stream.Waiting() > 0 })
			time.Sleep(100 * time.Millisecond) // no event reports that an event is withheld
			if sees(lister, "a")() {
				t.Error("the informer saw the event")
			}
			f.Release()
			eventually(t, "the informer sees what was withheld", sees(lister, "a"))
			l.configMap("b")
			eventually(t, "the informer goes on", sees(lister, "b"))
			if n := l.ledger.Count(watches); n != 1 {
				t.Errorf("%d watches:\n%v", n, l.ledger.Entries())
			}
		})
	}
}

// TestFreezeLaterWatches opens a watch under a rule, and cuts it while it is frozen.
func TestFreezeLaterWatches(t *testing.T) {
	l := newLab(t)
	f := l.proxy.Add(proxy.Rule{Match: watches, Times: 1, Do: proxy.Freeze()})
	w, err := l.kube.CoreV1().ConfigMaps(l.namespace).Watch(t.Context(), metav1.ListOptions{})
	l.must(err)
	l.configMap("a")
	stream := l.proxy.Streams(watches)[0]
	eventually(t, "events wait", func() bool { return stream.Waiting() > 0 })
	select {
	case e := <-w.ResultChan():
		t.Errorf("a frozen watch reported %v", e)
	case <-time.After(100 * time.Millisecond):
	}
	stream.Cut()
	for e := range w.ResultChan() {
		if e.Type != watch.Error {
			t.Errorf("what was withheld came: %v", e)
		}
	}
	if e := l.last(); f.Fired() != 1 || e.Events != 0 {
		t.Errorf("fired %d times; %v", f.Fired(), e)
	}
}

// TestEnds shows what an informer does when its watch ends. Only after an orderly end it continues from its last
// version; after an error it lists again, as a stream.
func TestEnds(t *testing.T) {
	for name, test := range map[string]struct {
		end     func(*proxy.Stream) error
		relists bool
	}{
		"cut":    {func(s *proxy.Stream) error { s.Cut(); return nil }, true},
		"end":    {func(s *proxy.Stream) error { s.End(); return nil }, false},
		"expire": {(*proxy.Stream).Expire, true},
	} {
		for _, contentType := range []string{protobufType, jsonType} {
			t.Run(name+" "+contentType[len("application/"):], func(t *testing.T) {
				l := newLab(t)
				l.configMap("gone")
				lister := l.informer(contentType)
				l.configMap("first") // client-go treats a watch that ends at once without an event as an error
				eventually(t, "the informer follows", sees(lister, "first"))
				f := l.proxy.Add(proxy.Rule{Match: watches, Times: 1, Do: proxy.Freeze()})
				l.must(l.admin.CoreV1().ConfigMaps(l.namespace).Delete(t.Context(), "gone", metav1.DeleteOptions{}))
				l.configMap("new")
				f.Remove()
				stream := l.proxy.Streams(watches)[0]
				eventually(t, "both events wait", func() bool { return stream.Waiting() >= 2 })
				l.must(test.end(stream))
				eventually(t, "the informer knows the truth", func() bool {
					return sees(lister, "new")() && !sees(lister, "gone")()
				})
				entries := l.ledger.Entries(ledger.Match{Resources: []string{"configmaps"}})
				second := entries[1]
				if relists := strings.Contains(l.query(second), "sendInitialEvents=true"); len(entries) != 2 ||
					relists != test.relists {
					t.Errorf("lists again: %v\n%v\n%s", relists, entries, l.query(second))
				}
			})
		}
	}
}

// query is the URL of a request, from the audit log.
func (l *lab) query(e ledger.Entry) (uri string) {
	l.t.Helper()
	eventually(l.t, "the request is in the audit log", func() bool {
		events, _, err := w.Audit(0)
		l.must(err)
		i := slices.IndexFunc(events, func(a fixture.AuditEvent) bool { return a.AuditID == e.AuditIDs[0] })
		if i >= 0 {
			uri = events[i].RequestURI
		}
		return i >= 0
	})
	return uri
}

// TestOldSnapshot answers a list from memory and holds the watch after it: the client sees an old state.
func TestOldSnapshot(t *testing.T) {
	l := newLab(t)
	l.configMap("old")
	lists := ledger.Match{Verbs: []string{wire.List}, Resources: []string{"configmaps"}}
	var then proxy.Answer
	keep := l.proxy.Add(proxy.Rule{
		Match: lists, Moment: proxy.After, Times: 1, Do: proxy.Call(func(x *proxy.Exchange) proxy.Action {
			then = *x.Answer()
			return proxy.Action{}
		})})
	names := func() (names []string) {
		list, err := l.kube.CoreV1().ConfigMaps(l.namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "!root"})
		l.must(err)
		for _, c := range list.Items {
			if c.Name != "kube-root-ca.crt" {
				names = append(names, c.Name)
			}
		}
		return names
	}
	names()
	keep.Release()
	l.must(l.admin.CoreV1().ConfigMaps(l.namespace).Delete(t.Context(), "old", metav1.DeleteOptions{}))
	l.proxy.Add(proxy.Rule{Match: lists, Do: proxy.Reply(then)})
	if got := names(); !slices.Equal(got, []string{"old"}) {
		t.Errorf("the list of the past holds %q", got)
	}
	event, err := wire.Values.Encode("ADDED", &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Name: "old"}})
	l.must(err)
	l.proxy.Add(proxy.Rule{Match: watches, Do: proxy.Reply(proxy.Answer{Code: http.StatusOK, Body: event, Open: true})})
	past, err := l.kube.CoreV1().ConfigMaps(l.namespace).Watch(t.Context(), metav1.ListOptions{})
	l.must(err)
	if e := <-past.ResultChan(); e.Type != watch.Added || e.Object.(*corev1.ConfigMap).Name != "old" {
		t.Errorf("the watch of the past tells %v", e)
	}
	select {
	case e, ok := <-past.ResultChan():
		t.Errorf("it goes on with %v, %v", e, ok)
	case <-time.After(100 * time.Millisecond):
	}
	l.proxy.Streams(watches)[0].End()
	if e, ok := <-past.ResultChan(); ok {
		t.Errorf("it ends with %v", e)
	}
}

// TestWatchesInTheLedger follows a watch from its beginning to its end.
func TestWatchesInTheLedger(t *testing.T) {
	l := newLab(t)
	l.configMap("a")
	follow, err := l.kube.CoreV1().ConfigMaps(l.namespace).
		Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=a"})
	l.must(err)
	got := <-follow.ResultChan()
	if e := l.last(); !e.Open || e.Events != 1 || e.Name != "a" || e.Code != 200 {
		t.Errorf("open: %+v", e)
	}
	follow.Stop()
	eventually(t, "the entry is closed", func() bool { return !l.last().Open })
	if n := len(l.proxy.Streams(watches)); n != 0 {
		t.Errorf("%d streams are left", n)
	}
	object := got.Object.(*corev1.ConfigMap)
	object.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}
	body, err := json.Marshal(object) // it contains no change
	l.must(err)
	_, err = l.kube.CoreV1().ConfigMaps(l.namespace).
		Patch(t.Context(), "a", "application/merge-patch+json", body, metav1.PatchOptions{})
	l.must(err)
	if e := l.last(); e.Effect != ledger.Same || e.Known != object.ResourceVersion {
		t.Errorf("what the watch reported is not known: %s", cmp.Diff(ledger.Entry{}, e))
	}
}
