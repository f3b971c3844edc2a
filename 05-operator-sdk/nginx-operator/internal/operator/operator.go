// Package operator composes hardening around the core of an operator.
package operator

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/example/nginx-operator/internal/hardening"
	"github.com/example/nginx-operator/internal/owned"
)

// NewHardening returns the hardening of the core. Its client reads from a cache that contains the client's writes; reader
// reads from the API server.
func NewHardening(resource client.Object, conditions func(client.Object) []metav1.Condition,
	c client.Client, reader client.Reader) *hardening.Hardening {
	return hardening.New(hardening.Hardening{
		Owner:      resource,
		Conditions: conditions,
		Client:     hardening.Reads(c), // a read waits for the cache, with a time limit
		APIReader:  reader,
	})
}

// Compose returns a core with its decorators. Without h, the core works, too: core(c, owned.NewApplier(c, ...)).
func Compose(h *hardening.Hardening, kind owned.Kind, fieldOwner client.FieldOwner,
	core func(client.Client, owned.Applier) reconcile.Reconciler) reconcile.Reconciler {
	children := owned.NewApplier(h.Client, kind, fieldOwner)
	children = h.Children(children)        // drift, mutations, orphans, edited elements, refusals
	c := h.Statuses(h.Client)              // status writes that wait
	return h.Reconciler(core(c, children)) // an end in order, errors to results
}
