// Package cachecost measures what the caches of the controller cost in a cluster where most objects are
// not its business.
package cachecost

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/sync/errgroup"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"example.com/operator-workshop/03-client-go-controller/internal/controller"
	"example.com/operator-workshop/03-client-go-controller/internal/operator"
	"example.com/operator-workshop/03-client-go-controller/pkg/generated/clientset/versioned"
)

// Options say in what cluster the caches are measured.
type Options struct {
	// Foreign is how many ConfigMaps are made that belong to no MyWeb, Size is their size in bytes.
	Foreign, Size int
}

// variants are what may be kept of each object.
var variants = []struct {
	name string
	trim cache.TransformFunc
}{
	{"everything", nil},
	{"all but managed fields", dropManagedFields},
	{"of foreign objects the name", controller.Trim},
}

// Run makes the ConfigMaps in a namespace of their own, fills the caches of the controller once for each
// variant, prints what each costs, and removes the namespace. Ctrl-C, which ends ctx, removes it too.
func Run(ctx context.Context, cfg *rest.Config, o Options, out io.Writer) (err error) {
	kube, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return err
	}
	web, err := versioned.NewForConfig(cfg)
	if err != nil {
		return err
	}
	if err := operator.CRDInstalled(ctx, web, cfg.Host); err != nil {
		return err
	}
	if err := earlierGone(ctx, kube); err != nil {
		return err
	}
	namespace, err := kube.CoreV1().Namespaces().Create(ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "cachecost-", Labels: own}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	defer func() {
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
		defer cancel()
		err = errors.Join(err, kube.CoreV1().Namespaces().Delete(clean, namespace.Name, metav1.DeleteOptions{}))
	}()
	fmt.Fprintf(out, "making %d ConfigMaps of %d bytes\n", o.Foreign, o.Size)
	if err := fill(ctx, kube, namespace.Name, o); err != nil {
		return err
	}
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintf(table, "KEPT\tCONFIGMAPS SEEN\tHEAP\n")
	for _, v := range variants {
		seen, bytes, err := measure(ctx, kube, web, v.trim)
		if err != nil {
			return err
		}
		fmt.Fprintf(table, "%s\t%d\t%.1f MB\n", v.name, seen, float64(bytes)/1e6)
	}
	return table.Flush()
}

// own are the labels of the namespace.
var own = map[string]string{"app.kubernetes.io/name": "cachecost"}

// earlierGone waits until what an earlier run made is gone: it would be counted, too.
func earlierGone(ctx context.Context, kube kubernetes.Interface) error {
	return wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		left, err := kube.CoreV1().Namespaces().List(ctx, metav1.ListOptions{LabelSelector: labels.FormatLabels(own)})
		return err == nil && len(left.Items) == 0, err
	})
}

// fill makes the foreign ConfigMaps, some at a time.
func fill(ctx context.Context, kube kubernetes.Interface, namespace string, o Options) error {
	data := map[string]string{"data": strings.Repeat("x", o.Size)}
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(4)
	for range o.Foreign {
		work.Go(func() error {
			foreign := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "foreign-"}, Data: data}
			_, err := kube.CoreV1().ConfigMaps(namespace).Create(ctx, foreign, metav1.CreateOptions{})
			return err
		})
	}
	return work.Wait()
}

// measure fills caches and returns how many ConfigMaps are in them, and how many bytes of heap they keep
// busy.
func measure(ctx context.Context, kube kubernetes.Interface, web versioned.Interface, trim cache.TransformFunc) (seen int, bytes int64, err error) {
	caches, err := controller.NewCaches(kube, web, trim)
	if err != nil {
		return 0, 0, err
	}
	before := heap()
	following, stop := context.WithCancel(ctx)
	caches.Start(following)
	defer caches.Shutdown()
	defer stop()
	if !caches.Wait(ctx) {
		return 0, 0, ctx.Err()
	}
	bytes = heap() - before
	return len(caches.ConfigMaps.Informer().GetStore().ListKeys()), max(0, bytes), nil
}

// heap is how much of it is in use after a collection, in bytes.
func heap() int64 {
	runtime.GC()
	runtime.GC() // what the first one finalized
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

func dropManagedFields(obj any) (any, error) {
	if o, ok := obj.(metav1.Object); ok {
		o.SetManagedFields(nil)
	}
	return obj, nil
}
