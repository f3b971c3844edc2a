package controller

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	proxyv1alpha1 "github.com/example/nginx-operator/api/v1alpha1"
	"github.com/example/nginx-operator/internal/owned"
)

// mapByLabel returns a map from a pod or a ReplicaSet to the Nginx that its labels name, if nginxes, a cache, has one. Any user
// can set labels; here they only choose which Nginx is reconciled. A pod of an Nginx always has this label, or its
// ReplicaSet would release it.
func mapByLabel(nginxes client.Reader) handler.MapFunc {
	byName := owned.MapByName(nginxes, &proxyv1alpha1.Nginx{})
	return func(ctx context.Context, obj client.Object) []reconcile.Request {
		return byName(ctx, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Namespace: obj.GetNamespace(), Name: obj.GetLabels()[labelInstance]}})
	}
}

// mapByContent returns the Nginxes whose content is a ConfigMap.
func mapByContent(nginxes client.Reader) handler.MapFunc {
	return func(ctx context.Context, obj client.Object) (requests []reconcile.Request) {
		var all proxyv1alpha1.NginxList // only the names are used
		err := nginxes.List(ctx, &all, client.InNamespace(obj.GetNamespace()),
			client.MatchingFields{contentField: obj.GetName()}, client.UnsafeDisableDeepCopy)
		if err != nil {
			log.FromContext(ctx).Error(err, "Could not list whose content a ConfigMap is",
				"configMap", client.ObjectKeyFromObject(obj))
		}
		for i := range all.Items {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&all.Items[i])})
		}
		return requests
	}
}
