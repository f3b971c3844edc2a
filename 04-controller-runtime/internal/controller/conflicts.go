package controller

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
	"example.com/operator-workshop/04-controller-runtime/internal/myweb"
)

// Demanded by the checks of behaviour/06 and behaviour/07: a MyWeb recovers by itself, at once, when the
// object that it was in conflict with is gone. Owns does not report that: the MyWeb did not own the object.

// mapToMyWebs returns the MyWebs that an object may be in conflict with: the one that has its name, and those
// that ask for a node port that it has. On a change it is called for the old state of the object, too.
func (r *Reconciler) mapToMyWebs(ctx context.Context, obj client.Object) (requests []ctrl.Request) {
	self := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(obj)}
	if !isEnqueued(obj) {
		requests = append(requests, self)
	}
	for _, port := range nodePorts(obj) {
		var webs webv1.MyWebList // of which only the names are read
		err := r.List(ctx, &webs, client.MatchingFields{byNodePort: port},
			client.DisableReadYourWritesConsistency, client.UnsafeDisableDeepCopy)
		if err != nil {
			log.FromContext(ctx).Error(err, "Could not list the MyWebs that ask for a node port", "port", port)
		}
		for i := range webs.Items {
			if web := requestFor(&webs.Items[i]); web != self {
				requests = append(requests, web)
			}
		}
	}
	return requests
}

// isEnqueued reports whether For or Owns enqueues the MyWeb that has the name of an object.
func isEnqueued(obj client.Object) bool {
	_, isMyWeb := obj.(*webv1.MyWeb)
	owner := metav1.GetControllerOfNoCopy(obj)
	return isMyWeb || owner != nil && myweb.OwnerUID(obj) != "" && owner.Name == obj.GetName()
}
