package controller

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	proxyv1alpha1 "github.com/example/nginx-operator/api/v1alpha1"
)

// mapByLabel returns the Nginx that the labels of a pod or a ReplicaSet name. Any user can set labels; here they
// only choose which Nginx is reconciled. A pod of an Nginx always has this label, or its ReplicaSet would release it.
func mapByLabel(_ context.Context, obj client.Object) []reconcile.Request {
	key := client.ObjectKey{Namespace: obj.GetNamespace(), Name: obj.GetLabels()[labelInstance]}
	return []reconcile.Request{{NamespacedName: key}}
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
