package hardening

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
	"example.com/operator-workshop/04-controller-runtime/internal/myweb"
)

// Demanded by fault/22-orphans-unseen: who deletes a MyWeb with --cascade=orphan wants to keep the children. The
// garbage collector takes their owner references away, and a cache may show that before it shows that the MyWeb is
// deleted. An operator that restored a reference now would have the child deleted.

// adoptRetry is when to look again after a child was not taken back: the cache should have caught up by then.
const adoptRetry = time.Second

// CanAdopt returns a RequeueAfter when a child has lost its owner reference and its MyWeb is being deleted, or gone.
// The cache cannot tell, so read asks the API server for the MyWebs of that name. Kubernetes' own controllers do the
// same (RecheckDeletionTimestamp in k8s.io/kubernetes/pkg/controller/controller_ref_manager.go).
func CanAdopt(web *webv1.MyWeb, child *myweb.Child, read func() ([]webv1.MyWeb, error)) error {
	if child.Live.GetUID() == "" || metav1.GetControllerOfNoCopy(child.Live) != nil {
		return nil
	}
	webs, err := read()
	if err != nil {
		return err
	}
	for i := range webs {
		if webs[i].UID == web.UID && webs[i].DeletionTimestamp == nil {
			return nil
		}
	}
	return RequeueAfter(adoptRetry)
}
