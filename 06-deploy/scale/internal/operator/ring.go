package operator

import (
	"context"

	shardcontroller "github.com/timebertt/kubernetes-controller-sharding/pkg/shard/controller"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	webv1 "example.com/operator-workshop/06-deploy/scale/api/v1"
	"example.com/operator-workshop/06-deploy/scale/internal/controller"
	"example.com/operator-workshop/06-deploy/scale/internal/myweb"
	"example.com/operator-workshop/06-deploy/scale/internal/nodeport"
)

// AddRingController is AddController for a member of a ControllerRing. The library's reconciler is around ours: it
// answers the sharder that takes a MyWeb away, and passes all other MyWebs of this member on.
func AddRingController(mgr ctrl.Manager, ring, member string) error {
	if err := startInformers(context.Background(), mgr.GetCache()); err != nil {
		return err
	}
	h := NewHardening(mgr.GetClient(), mgr.GetAPIReader())
	r, err := shardcontroller.NewShardedReconciler(mgr).For(&webv1.MyWeb{}).InControllerRing(ring).WithShardName(member).
		Build(Compose(h, mgr.GetEventRecorder(myweb.FieldOwner)))
	if err != nil {
		return err
	}
	return controller.Builder(mgr).
		Watches(&corev1.Service{}, handler.EnqueueRequestsFromMapFunc(nodeport.MapToWaiting(mgr.GetCache()))).
		WithOptions(h.Options()).
		Complete(r)
}
