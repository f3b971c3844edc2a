package hardening

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
func (c children) mayAdopt(ctx context.Context, child *child) error {
	if child.Live.GetUID() == "" || metav1.GetControllerOfNoCopy(child.Live) != nil {
		return nil
	}
	owners := &metav1.PartialObjectMetadataList{}
	owners.SetGroupVersionKind(c.Kind.GroupVersion().WithKind(c.Kind.Kind + "List"))
	err := c.h.APIReader.List(ctx, owners, client.InNamespace(child.Live.GetNamespace()),
		client.MatchingFields{metav1.ObjectNameField: *child.owner.Name})
	if err != nil {
		return fmt.Errorf("list the owners of %s: %w", child, err)
	}
	for i := range owners.Items {
		if owners.Items[i].UID == *child.owner.UID && owners.Items[i].DeletionTimestamp == nil {
			return nil
		}
	}
	return RequeueAfter(adoptRetry)
}
