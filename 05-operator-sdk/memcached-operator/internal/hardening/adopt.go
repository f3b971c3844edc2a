package hardening

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Demanded by TestAnOrphanOfADeletedOwnerIsNotTakenBack: who deletes a resource with --cascade=orphan wants to keep
// the children. The garbage collector takes their owner references away, and a cache may show that before it shows
// that the resource is deleted. An operator that restored a reference now would have the child deleted.

// adoptRetry is when to look again after a child was not taken back: the cache should have caught up by then.
const adoptRetry = time.Second

// CanAdopt returns a RequeueAfter when live, a child, has lost its owner reference, and its owner is being deleted or
// gone. The cache cannot tell, so it asks the API server: by a list, because the operator's role has no get.
// Kubernetes' own controllers do the same (RecheckDeletionTimestamp in
// k8s.io/kubernetes/pkg/controller/controller_ref_manager.go).
func (c Client) CanAdopt(ctx context.Context, owner, live client.Object) error {
	if live == nil || metav1.GetControllerOfNoCopy(live) != nil {
		return nil
	}
	kind, err := c.GroupVersionKindFor(owner)
	if err != nil {
		return err
	}
	owners := &metav1.PartialObjectMetadataList{}
	owners.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	err = c.Live.List(ctx, owners, client.InNamespace(owner.GetNamespace()),
		client.MatchingFields{metav1.ObjectNameField: owner.GetName()})
	if err != nil {
		return fmt.Errorf("list %s %s/%s: %w", kind.Kind, owner.GetNamespace(), owner.GetName(), err)
	}
	for i := range owners.Items {
		if owners.Items[i].UID == owner.GetUID() && owners.Items[i].DeletionTimestamp == nil {
			return nil
		}
	}
	return RequeueAfter(adoptRetry)
}
