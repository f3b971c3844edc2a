// Package operator composes hardening around the core of an operator.
package operator

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/example/memcached-operator/internal/hardening"
	"github.com/example/memcached-operator/internal/owned"
)

// NewHardening returns the hardening of the core. Its client reads from a cache that contains the client's writes; reader
// reads from the API server.
func NewHardening(kind owned.Kind, fieldOwner client.FieldOwner, c client.Client, reader client.Reader,
) *hardening.Hardening {
	return hardening.New(hardening.Hardening{
		Kind:       kind,
		FieldOwner: fieldOwner,
		Client:     hardening.Reads(c), // a read waits for the cache, with a time limit
		APIReader:  reader,
	})
}

// Compose returns a core with its decorators. Without h, the core works, too:
// reconcile.AsReconciler(c, core(owned.ServerSideApply{...})).
func Compose[T client.Object](h *hardening.Hardening, core func(owned.Applier) reconcile.ObjectReconciler[T],
) reconcile.Reconciler {
	var applier owned.Applier = owned.ServerSideApply{Client: h.Client, FieldOwner: h.FieldOwner}
	applier = h.Applier(applier)                                    // drift, mutations, orphans, edited elements, refusals
	restored := hardening.RestoreStatus(h, core(applier))           // a status that another client wrote
	return h.Reconciler(reconcile.AsReconciler(h.Client, restored)) // an end in order, conflicts to results
}
