// Package cachecost measures what a cache of ConfigMaps costs, in memory and on the wire, by what it keeps.
package cachecost

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"golang.org/x/sync/errgroup"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
	"example.com/operator-workshop/04-controller-runtime/internal/operator"
)

// Options say which objects surround the cache when it is measured.
type Options struct {
	// Own are numbers of ConfigMaps that a MyWeb controls, ascending; the cache is measured at each.
	Own []int
	// Unmanaged is how many ConfigMaps no MyWeb owns, Size is the size of each in bytes.
	Unmanaged, Size int
}

// ownPage is the page in each own ConfigMap: 1 KB.
var ownPage = strings.Repeat("x", 1000)

// ownLabels are the labels that the operator sets on its children.
var ownLabels = map[string]string{"app.kubernetes.io/managed-by": "myweb-operator"}

// variants are the caches to compare, by the data that they keep.
var variants = []struct {
	name string
	by   cache.ByObject
	seen client.Object // the kind that a reader asks for
}{
	{"everything", cache.ByObject{}, &corev1.ConfigMap{}},
	{"transform: unmanaged by name", cache.ByObject{Transform: operator.Trim}, &corev1.ConfigMap{}},
	{"label selector: owned only", cache.ByObject{Label: labels.SelectorFromSet(ownLabels)}, &corev1.ConfigMap{}},
	{"metadata only", cache.ByObject{}, &metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}}},
}

// lab is a namespace with the objects of a measurement.
type lab struct {
	client.Client
	cfg       *rest.Config
	scheme    *apiruntime.Scheme
	namespace string
	web       *webv1.MyWeb
}

// Run makes the unmanaged ConfigMaps, adds owned ConfigMaps up to each number, prints the costs of each variant, and
// removes all of them. A separate MyWeb controls the owned ConfigMaps. No operator may run meanwhile.
func Run(ctx context.Context, cfg *rest.Config, o Options, out io.Writer) (err error) {
	l := &lab{cfg: rest.CopyConfig(cfg), scheme: apiruntime.NewScheme()}
	l.cfg.QPS = -1
	utilruntime.Must(clientgoscheme.AddToScheme(l.scheme))
	utilruntime.Must(webv1.AddToScheme(l.scheme))
	if l.Client, err = client.New(l.cfg, client.Options{Scheme: l.scheme}); err != nil {
		return err
	}
	if err := l.earlierGone(ctx); err != nil {
		return err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "cachecost-", Labels: namespaceLabels}}
	if err := l.Create(ctx, namespace); err != nil {
		return err
	}
	l.namespace = namespace.Name
	defer func() {
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
		defer cancel()
		err = errors.Join(err, l.Delete(clean, namespace))
	}()
	l.web = &webv1.MyWeb{ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: "owner"},
		Spec: webv1.MyWebSpec{Image: "nginx"}}
	if err := l.Create(ctx, l.web); err != nil {
		return fmt.Errorf("%w: is the CRD installed? (kubectl apply -f config/crd)", err)
	}
	fmt.Fprintf(out, "making %d unmanaged ConfigMaps of %d bytes, then owned ones: half a minute\n", o.Unmanaged, o.Size)
	if err := l.fill(ctx, o.Unmanaged, l.unmanaged(o.Size)); err != nil {
		return err
	}
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintf(table, "KEPT\tOWNED\tSEEN\tHEAP\tSENT BY API SERVER\n")
	made := 0
	for _, own := range o.Own {
		if err := l.fill(ctx, own-made, l.own); err != nil {
			return err
		}
		made = own
		for _, v := range variants {
			seen, heap, sent, err := l.measure(ctx, v.by, v.seen)
			if err != nil {
				return err
			}
			fmt.Fprintf(table, "%s\t%d\t%d\t%.1f MB\t%.1f MB\n", v.name, own, seen, float64(heap)/1e6, float64(sent)/1e6)
		}
	}
	return table.Flush()
}

// namespaceLabels identify the namespaces of this command.
var namespaceLabels = client.MatchingLabels{"app.kubernetes.io/name": "cachecost"}

// earlierGone waits until the objects of an earlier run are gone: they would be counted, too.
func (l *lab) earlierGone(ctx context.Context) error {
	gone := func(ctx context.Context) (bool, error) {
		var left corev1.NamespaceList
		err := l.List(ctx, &left, namespaceLabels)
		return err == nil && len(left.Items) == 0, err
	}
	return wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, 2*time.Minute, true, gone)
}

func (l *lab) unmanaged(size int) func() *corev1.ConfigMap {
	data := map[string]string{"data": strings.Repeat("x", size)}
	return func() *corev1.ConfigMap {
		return &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, GenerateName: "unmanaged-"}, Data: data}
	}
}

func (l *lab) own() *corev1.ConfigMap {
	owner := *metav1.NewControllerRef(l.web, webv1.SchemeGroupVersion.WithKind("MyWeb"))
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: l.namespace, GenerateName: "own-", Labels: ownLabels, OwnerReferences: []metav1.OwnerReference{owner}},
		Data: map[string]string{"index.html": ownPage},
	}
}

// fill creates n objects, several at a time.
func (l *lab) fill(ctx context.Context, n int, object func() *corev1.ConfigMap) error {
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(8)
	for range n {
		work.Go(func() error { return l.Create(ctx, object()) })
	}
	return work.Wait()
}

// measure fills a cache and returns how many objects are in it, how many bytes of heap it uses, and how many bytes the
// API server sent for it.
func (l *lab) measure(ctx context.Context, by cache.ByObject,
	obj client.Object) (seen int, bytes, sent int64, err error) {
	var read atomic.Int64
	cfg := rest.CopyConfig(l.cfg)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return counter{next, &read} })
	cfg.DisableCompression = true
	before := heap()
	c, err := cache.New(cfg, cache.Options{Scheme: l.scheme, ByObject: map[client.Object]cache.ByObject{obj: by}})
	if err != nil {
		return 0, 0, 0, err
	}
	if _, err := c.GetInformer(ctx, obj); err != nil {
		return 0, 0, 0, err
	}
	following, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- c.Start(following) }()
	if !c.WaitForCacheSync(ctx) {
		return 0, 0, 0, ctx.Err()
	}
	bytes = heap() - before
	if seen, err = count(ctx, c, obj); err != nil {
		return 0, 0, 0, err
	}
	stop()
	return seen, max(0, bytes), read.Load(), <-ended
}

// count returns the number of objects of this kind in the cache.
func count(ctx context.Context, c cache.Cache, obj client.Object) (int, error) {
	if _, ok := obj.(*corev1.ConfigMap); ok {
		list := &corev1.ConfigMapList{}
		err := c.List(ctx, list, client.UnsafeDisableDeepCopy)
		return len(list.Items), err
	}
	list := &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMapList"}}
	err := c.List(ctx, list, client.UnsafeDisableDeepCopy)
	return len(list.Items), err
}

// heap returns the size of the heap in use after a garbage collection, in bytes.
func heap() int64 {
	runtime.GC()
	runtime.GC() // frees what the first collection finalized
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// counter counts the bytes of all answers.
type counter struct {
	next http.RoundTripper
	read *atomic.Int64
}

func (c counter) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := c.next.RoundTrip(r)
	if err == nil {
		answer.Body = countedBody{answer.Body, c.read}
	}
	return answer, err
}

type countedBody struct {
	io.ReadCloser
	read *atomic.Int64
}

func (b countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.read.Add(int64(n))
	return n, err
}
