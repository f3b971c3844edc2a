package webctl

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"

	webv1 "example.com/operator-workshop/02-codegen/pkg/apis/myweb/v1"
	"example.com/operator-workshop/02-codegen/pkg/generated/informers/externalversions"
	informerv1 "example.com/operator-workshop/02-codegen/pkg/generated/informers/externalversions/myweb/v1"
)

// watch shows each change of the MyWebs that match the selector until ctx ends, and then the objects in
// the cache. It fails at once when the API server does not know the kind.
func (v *verbs) watch(ctx context.Context, selector string, resync time.Duration) error {
	// An informer retries forever. A first read finds errors that no retry fixes.
	if _, err := v.webs().List(ctx, metav1.ListOptions{LabelSelector: selector, Limit: 1}); err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	factory := externalversions.NewSharedInformerFactoryWithOptions(v.client, resync,
		externalversions.WithNamespace(v.namespace),
		externalversions.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = selector }))
	webs := informerv1.ToTypedMyWebInformer(factory.Operator().V1().MyWebs())
	out := &lines{out: v.out}
	handling, err := webs.TypedInformer().AddTypedEventHandler(handler(out))
	if err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	factory.StartWithContext(ctx)
	// The cache has synced, and the handler was called for every object in it.
	if cache.WaitForCacheSync(ctx.Done(), handling.HasSynced) {
		out.printf("the cache has synced, watching")
	}
	<-ctx.Done()
	factory.Shutdown() // waits until no handler runs any more

	cached, err := webs.Lister().MyWebs(v.namespace).List(labels.Everything())
	if err != nil {
		return fmt.Errorf("list the cache: %w", err)
	}
	out.printf("the cache holds %d at the end", len(cached))
	return nil
}

// handler prints one line for each change that an informer reports. Its objects are in the cache: they are
// shared, so it only reads them.
func handler(out *lines) informerv1.MyWebDetailedHandlerFuncs {
	return informerv1.MyWebDetailedHandlerFuncs{
		AddFunc: func(web *webv1.MyWeb, initial bool) {
			if initial {
				out.printf("FOUND    %s", describe(web))
				return
			}
			out.printf("ADDED    %s", describe(web))
		},
		UpdateFunc: func(old, web *webv1.MyWeb) {
			switch {
			case old.ResourceVersion == web.ResourceVersion:
				out.printf("RESYNC   %s", describe(web))
			case !equality.Semantic.DeepEqual(old.Status, web.Status):
				out.printf("STATUS   %s", describe(web))
			default:
				out.printf("CHANGED  %s", describe(web))
			}
		},
		DeleteFunc: func(deleted informerv1.DeletedMyWeb) {
			out.printf("DELETED  %s", deleted.GetName())
		},
	}
}

// describe is a short description of a MyWeb.
func describe(web *webv1.MyWeb) string {
	return fmt.Sprintf("%s: generation %d, image %s, %d of %d ready",
		web.Name, web.Generation, web.Spec.Image, web.Status.ReadyReplicas, replicas(web))
}

// lines writes whole lines: the informer's goroutine and the caller's share one output.
type lines struct {
	mu  sync.Mutex
	out io.Writer
}

func (l *lines) printf(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(l.out, format+"\n", args...)
}
