package owned

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
)

// MapByName returns a map from an object to the owner that has its name, if owners, a cache, has one. Owns maps an
// object only to the owner that controls it, but an unmanaged object can have the name of a child, too. Demanded by
// behaviour/10-unmanaged-objects: most objects of a cluster have no owner of their name and start no reconcile. When
// such an owner comes later, its own event starts a reconcile, which finds the object.
func MapByName(owners client.Reader, kind client.Object) handler.MapFunc {
	return func(ctx context.Context, obj client.Object) []ctrl.Request {
		key := client.ObjectKeyFromObject(obj)
		if apierrors.IsNotFound(owners.Get(ctx, key, kind.DeepCopyObject().(client.Object))) {
			return nil
		}
		return []ctrl.Request{{NamespacedName: key}}
	}
}
