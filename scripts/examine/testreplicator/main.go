// An operator of the tests of examine that has no CRD. It copies the data of a ConfigMap into
// another one: the annotation test.example.com/copy-to names it, in the same namespace or in another (team/hello). With
// SOURCE=notes it copies the data of a Note, a custom resource whose fields are at its root. With SOURCE=deployments
// the annotation of a Deployment names a PodDisruptionBudget for its pods. FAULT plants a fault that a test must find.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"reflect"
	"slices"
	"strings"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/workqueue"
)

var (
	configMaps  = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	notes       = schema.GroupVersionResource{Group: "test.example.com", Version: "v1", Resource: "notes"}
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	budgets     = schema.GroupVersionResource{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"}
)

const (
	copyTo     = "test.example.com/copy-to"
	copiedFrom = "test.example.com/copied-from"
)

// Faults that FAULT plants.
const (
	once   = "once"   // an existing copy is never changed
	merges = "merges" // a key that the source no longer has stays in the copy
	leaves = "leaves" // a copy stays when the source is gone, or names another copy
	adopts = "adopts" // it overwrites a ConfigMap of another user
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

type replicator struct {
	client          dynamic.Interface
	fault           string
	source, copy    schema.GroupVersionResource
	sources, copies cache.GenericLister
	queue           workqueue.TypedRateLimitingInterface[cache.ObjectName]
}

func run(ctx context.Context) error {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	config.QPS = -1 // a client-side rate limit would hide its requests
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	r := &replicator{client: client, fault: os.Getenv("FAULT"), source: configMaps, copy: configMaps,
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[cache.ObjectName]())}
	switch os.Getenv("SOURCE") {
	case notes.Resource:
		r.source = notes
	case deployments.Resource:
		r.source, r.copy = deployments, budgets
	}
	factory := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	r.sources, r.copies = factory.ForResource(r.source).Lister(), factory.ForResource(r.copy).Lister()
	for _, gvr := range slices.Compact([]schema.GroupVersionResource{r.source, r.copy}) {
		_, err := factory.ForResource(gvr).Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: r.enqueue, UpdateFunc: func(old, now any) { r.enqueue(old); r.enqueue(now) }, DeleteFunc: r.enqueue})
		if err != nil {
			return err
		}
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	go func() { <-ctx.Done(); r.queue.ShutDown() }()
	for {
		name, over := r.queue.Get()
		if over {
			return nil
		}
		if err := r.reconcile(ctx, name); err != nil {
			fmt.Fprintf(os.Stderr, "level=error object=%s %v\n", name, err)
			r.queue.AddRateLimited(name)
		} else {
			r.queue.Forget(name)
		}
		r.queue.Done(name)
	}
}

// enqueue enqueues an object, and the source of a copy. Another object may have the name of
// a copy that a source waits for.
func (r *replicator) enqueue(object any) {
	if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = gone.Obj
	}
	u := object.(*unstructured.Unstructured)
	name := cache.MetaObjectToName(u)
	r.queue.Add(name)
	if from, ok := u.GetAnnotations()[copiedFrom]; ok {
		r.queue.Add(nameOf(from, ""))
	}
	all, _ := r.sources.List(labels.Everything()) // a lister of a cache has no errors
	for _, s := range all {
		if source := s.(*unstructured.Unstructured); targetOf(source) == name {
			r.queue.Add(cache.MetaObjectToName(source))
		}
	}
}

// nameOf reads namespace/name, or a name in a namespace.
func nameOf(text, namespace string) cache.ObjectName {
	before, after, found := strings.Cut(text, "/")
	if !found {
		return cache.ObjectName{Namespace: namespace, Name: text}
	}
	return cache.ObjectName{Namespace: before, Name: after}
}

// targetOf is the copy that a source names; empty when it names none.
func targetOf(source *unstructured.Unstructured) cache.ObjectName {
	name, _, _ := unstructured.NestedString(source.Object, "copyTo") // of a Note
	if annotation := source.GetAnnotations()[copyTo]; annotation != "" {
		name = annotation
	}
	if name == "" || source.GetDeletionTimestamp() != nil {
		return cache.ObjectName{}
	}
	return nameOf(name, source.GetNamespace())
}

// reconcile deletes the copies that a source no longer names, and applies the copy that it names.
func (r *replicator) reconcile(ctx context.Context, name cache.ObjectName) error {
	var target cache.ObjectName
	source, err := r.sources.ByNamespace(name.Namespace).Get(name.Name)
	if err == nil {
		target = targetOf(source.(*unstructured.Unstructured))
	} else if !apierrors.IsNotFound(err) {
		return err
	}
	var errs error
	all, _ := r.copies.List(labels.Everything())
	for _, object := range all {
		have := object.(*unstructured.Unstructured)
		at := cache.MetaObjectToName(have)
		if have.GetAnnotations()[copiedFrom] != name.String() || at == target || r.fault == leaves {
			continue
		}
		uid := have.GetUID()
		err := r.client.Resource(r.copy).Namespace(at.Namespace).Delete(ctx, at.Name,
			metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
		if !apierrors.IsNotFound(err) {
			errs = errors.Join(errs, err)
		}
	}
	if target.Name != "" {
		errs = errors.Join(errs, r.apply(ctx, source.(*unstructured.Unstructured), target))
	}
	return errs
}

// copyOf returns the copy of a source, without a name. That of a Deployment is a budget for its pods.
func copyOf(source *unstructured.Unstructured) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	if source.GetKind() == "Deployment" {
		selector, _, _ := unstructured.NestedMap(source.Object, "spec", "selector")
		u.Object = map[string]any{"spec": map[string]any{"minAvailable": int64(1), "selector": selector}}
		u.SetGroupVersionKind(budgets.GroupVersion().WithKind("PodDisruptionBudget"))
		return u
	}
	u.Object = map[string]any{"data": source.Object["data"]}
	u.SetGroupVersionKind(configMaps.GroupVersion().WithKind("ConfigMap"))
	return u
}

// hasContent reports whether an object has the data of a copy, or the fields of its spec.
func hasContent(have, want *unstructured.Unstructured) bool {
	spec, _, _ := unstructured.NestedMap(want.Object, "spec")
	for field, value := range spec {
		now, _, _ := unstructured.NestedFieldNoCopy(have.Object, "spec", field)
		if !reflect.DeepEqual(now, value) {
			return false
		}
	}
	return reflect.DeepEqual(have.Object["data"], want.Object["data"])
}

// apply makes the copy of a source, unless the copy is as it should be.
func (r *replicator) apply(ctx context.Context, source *unstructured.Unstructured, target cache.ObjectName) error {
	from := cache.MetaObjectToName(source).String()
	want := copyOf(source)
	object, err := r.copies.ByNamespace(target.Namespace).Get(target.Name)
	if err == nil {
		have := object.(*unstructured.Unstructured)
		switch {
		case have.GetAnnotations()[copiedFrom] != from && r.fault != adopts:
			return fmt.Errorf("%s already exists, and is not a copy of %s", target, from)
		case r.fault == once, have.GetAnnotations()[copiedFrom] == from &&
			hasContent(have, want):
			return nil
		}
	} else if !apierrors.IsNotFound(err) {
		return err
	}
	want.SetNamespace(target.Namespace)
	want.SetName(target.Name)
	want.SetAnnotations(map[string]string{copiedFrom: from})
	client := r.client.Resource(r.copy).Namespace(target.Namespace)
	if err == nil && r.fault == merges {
		data, err := want.MarshalJSON()
		if err == nil {
			_, err = client.Patch(ctx, target.Name, types.MergePatchType, data, metav1.PatchOptions{})
		}
		return err
	}
	_, err = client.Apply(ctx, target.Name, want, metav1.ApplyOptions{FieldManager: "testreplicator", Force: true})
	return err
}
