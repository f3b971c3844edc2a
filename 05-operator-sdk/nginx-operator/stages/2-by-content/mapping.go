// Package nginx maps objects to the Nginxes that depend on them.
package nginx

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	proxyv1alpha1 "github.com/example/nginx-operator/api/v1alpha1"
)

// ContentIndex is the name of an index of the cache: Nginxes by the ConfigMap that spec.contentRef names.
const ContentIndex = "spec.contentRef.name"

// Content returns the keys of an object in ContentIndex.
func Content(object client.Object) []string {
	nginx, ok := object.(*proxyv1alpha1.Nginx)
	if !ok || nginx.Spec.ContentRef == nil {
		return nil
	}
	return []string{nginx.Spec.ContentRef.Name}
}

// Mapper maps with the objects in the cache.
type Mapper struct{ client.Reader }

// ByContent returns the Nginxes to reconcile when a ConfigMap has changed. A watch calls it:
//
//	Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(mapper.ByContent))
func (m Mapper) ByContent(ctx context.Context, configMap client.Object) (requests []reconcile.Request) {
	var all proxyv1alpha1.NginxList
	if err := m.List(ctx, &all, client.InNamespace(configMap.GetNamespace()),
		client.MatchingFields{ContentIndex: configMap.GetName()}); err != nil {
		log.FromContext(ctx).Error(err, "Could not list the Nginxes of a ConfigMap")
	}
	for i := range all.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&all.Items[i])})
	}
	return requests
}
