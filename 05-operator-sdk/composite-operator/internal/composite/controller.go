package composite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
)

// ownerIndex finds children by the UID of their controller.
const ownerIndex = "controllerUID"

// Reconciler keeps the children and the status of all parents in the state that the hook desires. Create it with New.
type Reconciler struct {
	client.Client
	// URL is the address of the hook.
	URL string

	config   *Config
	hook     *http.Client
	parent   schema.GroupVersionKind
	children []childKind
}

// A childKind is a resource of children, by the kind of its objects.
type childKind struct {
	schema.GroupVersionKind
	inPlace bool
}

// New returns a Reconciler. It looks up the kinds of the resources that a configuration names.
func New(c client.Client, config *Config) (*Reconciler, error) {
	webhook := config.Spec.Hooks.Sync.Webhook
	r := &Reconciler{Client: c, config: config, URL: webhook.URL,
		hook: &http.Client{Timeout: cmp.Or(webhook.Timeout.Duration, 10*time.Second)}}
	var err error
	if r.parent, err = r.kindOf(config.Spec.ParentResource); err != nil {
		return nil, err
	}
	for _, resource := range config.Spec.ChildResources {
		kind, err := r.kindOf(resource)
		if err != nil {
			return nil, err
		}
		r.children = append(r.children, childKind{kind, resource.UpdateStrategy.Method == InPlace})
	}
	return r, nil
}

func (r *Reconciler) kindOf(resource Resource) (schema.GroupVersionKind, error) {
	gvr, err := resource.gvr()
	if err != nil {
		return schema.GroupVersionKind{}, err
	}
	kind, err := r.RESTMapper().KindFor(gvr)
	if meta.IsNoMatchError(err) {
		err = fmt.Errorf("the cluster does not know the resource %s of %s: install its CRD first", gvr.Resource,
			resource.APIVersion)
	}
	return kind, err
}

// SetupWithManager adds the reconciler to a manager.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, workers int) error {
	b := ctrl.NewControllerManagedBy(mgr).
		Named(r.config.Metadata.Name).
		For(newObject(r.parent)).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: workers,
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](
				50*time.Millisecond, 30*time.Second),
		})
	for _, kind := range r.children {
		child := newObject(kind.GroupVersionKind)
		if err := mgr.GetFieldIndexer().IndexField(ctx, child, ownerIndex, controllerUID); err != nil {
			return err
		}
		b = b.Owns(child).Watches(child, handler.EnqueueRequestsFromMapFunc(r.namesake))
	}
	return b.Complete(r)
}

// namesake enqueues the parent with the name of an object that has no controller, because the object may have been in
// conflict with a child. It reads only the cache.
func (r *Reconciler) namesake(ctx context.Context, object client.Object) []ctrl.Request {
	key := client.ObjectKeyFromObject(object)
	if metav1.GetControllerOf(object) != nil || r.Get(ctx, key, newObject(r.parent)) != nil {
		return nil
	}
	return []ctrl.Request{{NamespacedName: key}}
}

func controllerUID(object client.Object) []string {
	if owner := metav1.GetControllerOf(object); owner != nil {
		return []string{string(owner.UID)}
	}
	return nil
}

// reconcileTimeout is the time limit of a reconcile. It must be less than the time that the manager waits for running
// reconciles when it stops.
const reconcileTimeout = 8 * time.Second

// Reconcile sends one parent and its children to the hook, and applies the answer. When the manager stops, Reconcile
// continues to its end, because an abandoned write may arrive later, when the next leader works (check
// behaviour/14-leader-stops).
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reconcileTimeout)
	defer cancel()
	parent := newObject(r.parent)
	if err := r.Get(ctx, req.NamespacedName, parent); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if parent.GetDeletionTimestamp() != nil { // the garbage collector removes the children
		return ctrl.Result{}, nil
	}
	observed, err := r.observe(ctx, parent)
	if err != nil {
		return ctrl.Result{}, err
	}
	answer, err := r.ask(ctx, Request{Controller: r.config, Parent: parent, Children: observed})
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{},
		errors.Join(r.manage(ctx, parent, observed, answer.Children), r.updateStatus(ctx, parent, answer.Status))
}

// observe reads the children that a parent controls, by "Kind.apiVersion" and name.
func (r *Reconciler) observe(ctx context.Context, parent *unstructured.Unstructured) (
	map[string]map[string]*unstructured.Unstructured, error) {
	all := map[string]map[string]*unstructured.Unstructured{}
	for _, kind := range r.children {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		err := r.List(ctx, list, client.InNamespace(parent.GetNamespace()),
			client.MatchingFields{ownerIndex: string(parent.GetUID())})
		if err != nil {
			return nil, fmt.Errorf("list the children of kind %s: %w", kind.Kind, err)
		}
		named := map[string]*unstructured.Unstructured{}
		for i := range list.Items {
			named[list.Items[i].GetName()] = &list.Items[i]
		}
		all[kind.key()] = named
	}
	return all, nil
}

// key is the name of a kind in requests.
func (k childKind) key() string { return k.Kind + "." + k.GroupVersion().String() }

// updateStatus applies the status that the hook returned. It names the version of the parent that the hook received:
// when another client has edited the parent since, the API server answers 409, and the controller calls the hook again.
// It is an apply and not an update, because controller-runtime 0.25 waits for its cache after an apply of an
// unstructured object, and not after an update: the next reconcile would read the status from before this write, and
// get 409.
func (r *Reconciler) updateStatus(ctx context.Context, parent *unstructured.Unstructured, status map[string]any) error {
	if status == nil {
		status = map[string]any{}
	}
	status["observedGeneration"] = parent.GetGeneration()
	if reflect.DeepEqual(parent.Object["status"], any(status)) {
		return nil
	}
	write := newObject(r.parent)
	write.SetNamespace(parent.GetNamespace())
	write.SetName(parent.GetName())
	write.SetResourceVersion(parent.GetResourceVersion())
	write.Object["status"] = status
	err := r.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(write), fieldOwner, client.ForceOwnership)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("apply the status: %w", err)
	}
	return nil
}

func newObject(kind schema.GroupVersionKind) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(kind)
	return o
}
