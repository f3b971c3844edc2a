package controller

import (
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	cachev1alpha1 "github.com/example/memcached-operator/api/v1alpha1"
	"github.com/example/memcached-operator/internal/owned"
)

// byConfig is an index of the Memcacheds by the ConfigMap that they name. An index answers "which objects
// have this value?" without looking at all of them.
const byConfig = "spec.configRef.name"

// namedConfig is what the index holds of a Memcached.
func namedConfig(obj client.Object) []string {
	if name := configName(obj.(*cachev1alpha1.Memcached)); name != "" {
		return []string{name}
	}
	return nil
}

// whoNames asks for the Memcacheds that name a ConfigMap.
func (r *MemcachedReconciler) whoNames(ctx context.Context, obj client.Object) (requests []reconcile.Request) {
	var all cachev1alpha1.MemcachedList
	err := r.List(ctx, &all, client.InNamespace(obj.GetNamespace()), client.MatchingFields{byConfig: obj.GetName()},
		client.DisableReadYourWritesConsistency, client.UnsafeDisableDeepCopy) // only names are read, and nothing waited for
	if err != nil {
		log.FromContext(ctx).Error(err, "Could not tell who names a ConfigMap", "configMap", client.ObjectKeyFromObject(obj))
	}
	for i := range all.Items {
		requests = append(requests, sameName(ctx, &all.Items[i])...)
	}
	return requests
}

// sameName asks for the Memcached that has the name of an object. When there is none, Reconcile finds that
// out in the cache.
func sameName(_ context.Context, obj client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(obj)}}
}

// foreign lets only objects pass that the Memcached of their name does not control. Those that it does wake it
// through Owns.
var foreign = predicate.NewPredicateFuncs(func(obj client.Object) bool {
	controller := metav1.GetControllerOfNoCopy(obj)
	return controller == nil || controller.Name != obj.GetName() || controller.APIVersion != Kind.GroupVersion().String() || controller.Kind != Kind.Kind
})

// dataChanged hides changes of a ConfigMap that leave the keys as they are which the cache keeps.
var dataChanged = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	was, is := e.ObjectOld.(*corev1.ConfigMap), e.ObjectNew.(*corev1.ConfigMap)
	return !maps.Equal(was.Data, is.Data)
}}

// Trim is a cache.TransformFunc: what it returns is kept instead of what the API server sent. The cache
// holds all ConfigMaps, Deployments and Services, for each may be named by a Memcached or stand in its way.
// Of ConfigMaps only the keys stay that are read, of objects of others only what names them.
func Trim(obj any) (any, error) {
	if config, ok := obj.(*corev1.ConfigMap); ok {
		kept := &corev1.ConfigMap{ObjectMeta: owned.NameOf(config)}
		for _, key := range []string{KeyMemory, KeyConnections, KeyVerbose} {
			if value, found := config.Data[key]; found {
				if kept.Data == nil {
					kept.Data = map[string]string{}
				}
				kept.Data[key] = value
			}
		}
		return kept, nil
	}
	if o, ok := obj.(client.Object); ok {
		return owned.Trim(Kind, o), nil
	}
	return obj, nil
}
