// Package keep repairs what other clients do to the objects that tell the API server how to call a webhook.
package keep

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Object calls repair with each state of one object: a webhook configuration or a CRD. Another client may replace the object without the authority that Kubernetes must trust
// (kubectl replace), and then each call fails. The cache holds this object alone, so list and watch of its name suffice
// as permissions. An error of repair is tried again with backoff.
func Object(mgr ctrl.Manager, object client.Object, repair func(context.Context, client.Object) error) error {
	one, err := cacheOf(mgr, object)
	if err != nil {
		return err
	}
	kept := reconcile.Func(func(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
		live := object.DeepCopyObject().(client.Object)
		if err := one.Get(ctx, req.NamespacedName, live); err != nil {
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
		return ctrl.Result{}, repair(ctx, live)
	})
	return ctrl.NewControllerManagedBy(mgr).
		Named("keep-" + object.GetName()).
		WithOptions(controller.Options{SkipNameValidation: new(true)}). // a webhook has two configurations of one name
		WatchesRawSource(source.Kind(one, object, &handler.EnqueueRequestForObject{})).
		Complete(kept)
}

// cacheOf adds to a manager a cache of one object.
func cacheOf(mgr ctrl.Manager, object client.Object) (cache.Cache, error) {
	name := fields.OneTermEqualSelector(metav1.ObjectNameField, object.GetName())
	one, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(),
		Scheme:     mgr.GetScheme(),
		Mapper:     mgr.GetRESTMapper(),
		ByObject:   map[client.Object]cache.ByObject{object: {Field: name}},
	})
	if err != nil {
		return nil, err
	}
	return one, mgr.Add(one)
}
