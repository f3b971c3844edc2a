package operator

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	webv1 "example.com/operator-workshop/06-deploy/scale/api/v1"
	"example.com/operator-workshop/06-deploy/scale/internal/controller"
	"example.com/operator-workshop/06-deploy/scale/internal/hardening"
	"example.com/operator-workshop/06-deploy/scale/internal/myweb"
	"example.com/operator-workshop/06-deploy/scale/internal/owned"
)

// AddController adds the core to a manager, with all hardening around it. With c := mgr.GetClient(), the core alone is
//
//	controller.Builder(mgr).Complete(&controller.Reconciler{Client: c,
//		Children: owned.NewApplier(c, myweb.Kind, myweb.FieldOwner), Events: ...})
func AddController(mgr ctrl.Manager) error {
	if err := startInformers(context.Background(), mgr.GetCache()); err != nil {
		return err
	}
	h := NewHardening(mgr.GetClient(), mgr.GetAPIReader())
	return controller.Builder(mgr).
		Watches(&corev1.Service{}, handler.EnqueueRequestsFromMapFunc(mapToWaiting(mgr.GetCache()))).
		WithOptions(h.Options()).
		Complete(Compose(h, mgr.GetEventRecorder(myweb.FieldOwner)))
}

// NewHardening returns the decorators of the core. The client reads from a cache that has its own writes, and reader
// from the API server.
func NewHardening(c client.Client, reader client.Reader) *hardening.Hardening {
	return hardening.New(hardening.Hardening{
		Owner:      &webv1.MyWeb{},
		Conditions: func(web client.Object) []metav1.Condition { return web.(*webv1.MyWeb).Status.Conditions },
		Client:     hardening.Reads(c), // a read that waits for the cache, but not for long
		APIReader:  reader,
	})
}

// Compose returns the core with its decorators, the innermost first.
func Compose(h *hardening.Hardening, recorder events.EventRecorder) reconcile.Reconciler {
	children := owned.NewApplier(h.Client, myweb.Kind, myweb.FieldOwner)
	children = nodePorts(children)  // who has a node port
	children = h.Children(children) // drift, mutations, orphans, edited elements, refusals
	c := h.Statuses(h.Client)       // status writes that wait
	core := &controller.Reconciler{Client: c, Children: children, Events: recorder}
	return h.Reconciler(core) // an end in order, errors to results
}
