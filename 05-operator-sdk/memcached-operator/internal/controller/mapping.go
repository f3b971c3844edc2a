package controller

import (
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	cachev1alpha1 "github.com/example/memcached-operator/api/v1alpha1"
)

// configRefField is an index of the Memcacheds by the ConfigMap that they name. An index finds the objects that have
// a value without reading all of them.
const configRefField = "spec.configRef.name"

// indexConfigRef returns the key of a Memcached in the index.
func indexConfigRef(obj client.Object) []string {
	if name := configName(obj.(*cachev1alpha1.Memcached)); name != "" {
		return []string{name}
	}
	return nil
}

// mapByConfigRef returns the Memcacheds that name a ConfigMap.
func mapByConfigRef(memcacheds client.Reader) handler.MapFunc {
	return func(ctx context.Context, obj client.Object) (requests []reconcile.Request) {
		var all cachev1alpha1.MemcachedList // only the names are used
		err := memcacheds.List(ctx, &all, client.InNamespace(obj.GetNamespace()),
			client.MatchingFields{configRefField: obj.GetName()}, client.UnsafeDisableDeepCopy)
		if err != nil {
			log.FromContext(ctx).Error(err, "Could not list who names a ConfigMap",
				"configMap", client.ObjectKeyFromObject(obj))
		}
		for i := range all.Items {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&all.Items[i])})
		}
		return requests
	}
}

// dataChanged filters out updates of a ConfigMap that do not change the keys in the cache.
var dataChanged = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	was, is := e.ObjectOld.(*corev1.ConfigMap), e.ObjectNew.(*corev1.ConfigMap)
	return !maps.Equal(was.Data, is.Data)
}}
