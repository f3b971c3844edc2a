// Package cachecost measures how much memory the caches of the controller need in a cluster where most objects
// are unmanaged: they belong to no MyWeb.
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
	"example.com/operator-workshop/03-client-go-controller/internal/hardening"
	"example.com/operator-workshop/03-client-go-controller/internal/operator"
	"example.com/operator-workshop/03-client-go-controller/pkg/generated/clientset/versioned"
)

// Options describe the cluster in which the caches are measured.
type Options struct {
	// Unmanaged is how many ConfigMaps are created that belong to no MyWeb, Size is their size in bytes.
	Unmanaged, Size int
}

// variants are transforms of what the caches store.
var variants = []struct {
	name      string
	transform cache.TransformFunc
}{
	{"everything", nil},
	{"all but managed fields", dropManagedFields},
	{"unmanaged objects by name only", hardening.Trim},
}

// Run creates the ConfigMaps in a namespace of their own, syncs the caches of the controller once for each
// variant, prints the memory of each, and deletes the namespace, also when ctx ends before.
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
	if err := waitForCleanup(ctx, kube); err != nil {
		return err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "cachecost-", Labels: namespaceLabels}}
	namespace, err = kube.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	defer func() {
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
		defer cancel()
		err = errors.Join(err, kube.CoreV1().Namespaces().Delete(clean, namespace.Name, metav1.DeleteOptions{}))
	}()
	fmt.Fprintf(out, "creating %d ConfigMaps of %d bytes\n", o.Unmanaged, o.Size)
	if err := createConfigMaps(ctx, kube, namespace.Name, o); err != nil {
		return err
	}
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintf(table, "STORED\tCONFIGMAPS\tHEAP\n")
	for _, v := range variants {
		count, bytes, err := measure(ctx, kube, web, v.transform)
		if err != nil {
			return err
		}
		fmt.Fprintf(table, "%s\t%d\t%.1f MB\n", v.name, count, float64(bytes)/1e6)
	}
	return table.Flush()
}

// namespaceLabels are those of the namespace.
var namespaceLabels = map[string]string{"app.kubernetes.io/name": "cachecost"}

// waitForCleanup waits until the namespaces of earlier runs are gone: their objects would be counted, too.
func waitForCleanup(ctx context.Context, kube kubernetes.Interface) error {
	isGone := func(ctx context.Context) (bool, error) {
		options := metav1.ListOptions{LabelSelector: labels.FormatLabels(namespaceLabels)}
		left, err := kube.CoreV1().Namespaces().List(ctx, options)
		return err == nil && len(left.Items) == 0, err
	}
	return wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, 2*time.Minute, true, isGone)
}

// createConfigMaps creates the unmanaged ConfigMaps, some at a time.
func createConfigMaps(ctx context.Context, kube kubernetes.Interface, namespace string, o Options) error {
	data := map[string]string{"data": strings.Repeat("x", o.Size)}
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(4)
	for range o.Unmanaged {
		work.Go(func() error {
			unmanaged := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "unmanaged-"}, Data: data}
			_, err := kube.CoreV1().ConfigMaps(namespace).Create(ctx, unmanaged, metav1.CreateOptions{})
			return err
		})
	}
	return work.Wait()
}

// measure syncs the caches, and returns how many ConfigMaps they hold and how many bytes of heap they use.
func measure(
	ctx context.Context, kube kubernetes.Interface, web versioned.Interface, transform cache.TransformFunc,
) (count int, bytes int64, err error) {
	informers, err := controller.NewInformers(kube, web, transform)
	if err != nil {
		return 0, 0, err
	}
	before := heap()
	watching, stop := context.WithCancel(ctx)
	informers.Start(watching)
	defer informers.Shutdown()
	defer stop()
	if !informers.WaitForCacheSync(ctx) {
		return 0, 0, ctx.Err()
	}
	bytes = heap() - before
	return len(informers.ConfigMaps.Informer().GetStore().ListKeys()), max(0, bytes), nil
}

// heap returns how many bytes of the heap are in use after a garbage collection.
func heap() int64 {
	runtime.GC()
	runtime.GC() // collects what the first one finalized
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
