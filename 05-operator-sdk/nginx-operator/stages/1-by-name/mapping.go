// Package nginx maps objects to the Nginxes that depend on them.
package nginx

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// ContentIndex is the name of an index of the cache: Nginxes by the ConfigMap that spec.contentRef names.
const ContentIndex = "spec.contentRef.name"

// Content returns the keys of an object in ContentIndex.
func Content(client.Object) []string { return nil }

// Mapper maps with the objects in the cache.
type Mapper struct{ client.Reader }

// ByContent returns the Nginxes to reconcile when a ConfigMap has changed. A watch calls it:
//
//	Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(mapper.ByContent))
func (m Mapper) ByContent(_ context.Context, configMap client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(configMap)}}
}
