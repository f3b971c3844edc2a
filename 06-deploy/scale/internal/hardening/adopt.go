package hardening

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Demanded by fault/22-orphans-unseen: a user who deletes an owner with --cascade=orphan wants to keep the children.
// The garbage collector removes their owner references, and a cache may show that before it shows that the owner is
// deleted. If an operator restored a reference now, the child would be deleted.

// adoptRetry is the delay before the next try after a child was not adopted: the cache should have caught up by then.
const adoptRetry = time.Second

// mayAdopt returns a RequeueAfter when a child has lost its owner reference, and its owner is being deleted or gone.
// The cache may be too old to decide that, so mayAdopt asks the API server: by a list, because the operator's role has
// no get. Kubernetes' own controllers do the same (RecheckDeletionTimestamp in
// k8s.io/kubernetes/pkg/controller/controller_ref_manager.go).
func (a hardenedApplier) mayAdopt(ctx context.Context, c *comparison) error {
	if c.Live.GetUID() == "" || metav1.GetControllerOfNoCopy(c.Live) != nil {
		return nil
	}
	owners, err := a.list(ctx, a.Kind.GroupVersionKind, c.Live.GetNamespace(), *c.owner.Name)
	if err != nil {
		return err
	}
	for _, owner := range owners {
		if owner.UID == *c.owner.UID && owner.DeletionTimestamp == nil {
			return nil
		}
	}
	return RequeueAfter(adoptRetry)
}

// list reads the metadata of one object from the API server.
func (a hardenedApplier) list(ctx context.Context, kind schema.GroupVersionKind, namespace, name string,
) ([]metav1.PartialObjectMetadata, error) {
	found := &metav1.PartialObjectMetadataList{}
	found.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	err := a.APIReader.List(ctx, found, client.InNamespace(namespace),
		client.MatchingFields{metav1.ObjectNameField: name})
	if err != nil {
		return nil, fmt.Errorf("list %s %s: %w", kind.Kind, name, err)
	}
	return found.Items, nil
}
