package operator

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/operator-workshop/06-deploy/scale/internal/controller"
	"example.com/operator-workshop/06-deploy/scale/internal/hardening"
	"example.com/operator-workshop/06-deploy/scale/internal/myweb"
	"example.com/operator-workshop/06-deploy/scale/internal/nodeport"
	"example.com/operator-workshop/06-deploy/scale/internal/owned"
)

// AddController adds the core to a manager, with all hardening around it. With c := mgr.GetClient(), the core alone is
//
//	controller.Builder(mgr).Complete(reconcile.AsReconciler(c, &controller.Reconciler{Client: c,
//		Applier: owned.ServerSideApply{Client: c, FieldOwner: myweb.FieldOwner}, Events: ..., Now: time.Now}))
func AddController(mgr ctrl.Manager) error {
	if err := startInformers(context.Background(), mgr.GetCache()); err != nil {
		return err
	}
	h := NewHardening(mgr.GetClient(), mgr.GetAPIReader())
	return controller.Builder(mgr).
		Watches(&corev1.Service{}, handler.EnqueueRequestsFromMapFunc(nodeport.MapToWaiting(mgr.GetCache()))).
		WithOptions(h.Options()).
		Complete(Compose(h, mgr.GetEventRecorder(myweb.FieldOwner)))
}

// NewHardening returns the decorators of the core. The client reads from a cache that has its own writes, and reader
// from the API server.
func NewHardening(c client.Client, reader client.Reader) *hardening.Hardening {
	return hardening.New(hardening.Hardening{
		Kind:       myweb.Kind,
		FieldOwner: myweb.FieldOwner,
		Client:     hardening.Reads(c), // a read that waits for the cache, but not for long
		APIReader:  reader,
	})
}

// Compose returns the core with its decorators, the innermost first.
func Compose(h *hardening.Hardening, recorder events.EventRecorder) reconcile.Reconciler {
	var applier owned.Applier = owned.ServerSideApply{Client: h.Client, FieldOwner: h.FieldOwner}
	applier = nodeport.Applier(h.Client, applier) // who has a node port
	applier = h.Applier(applier)                  // drift, mutations, orphans, edited elements, refusals
	core := &controller.Reconciler{Client: h.Client, Applier: applier, Events: recorder, Now: h.Clock.Now}
	restored := hardening.RestoreStatus(h, core)                    // a status that another client wrote
	return h.Reconciler(reconcile.AsReconciler(h.Client, restored)) // an end in order, conflicts to results
}
