// Package record keeps a record for each MyWeb in the folder of a name server, which is outside the cluster.
package record

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
)

// Reconciler writes the record of a MyWeb.
type Reconciler struct {
	client.Client
	// Folder has the records, a file for each MyWeb. The name server reads it.
	Folder string
}

// Reconcile is called with the name of a MyWeb that may have changed.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	web := &webv1.MyWeb{}
	if err := r.Get(ctx, req.NamespacedName, web); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	return ctrl.Result{}, r.writeRecord(web)
}

// recordOf returns the file of a MyWeb's record.
func (r *Reconciler) recordOf(web *webv1.MyWeb) string {
	return filepath.Join(r.Folder, web.Namespace+"."+web.Name)
}

// writeRecord writes the node port of a MyWeb, or 0 while it has none.
func (r *Reconciler) writeRecord(web *webv1.MyWeb) error {
	return os.WriteFile(r.recordOf(web), fmt.Appendln(nil, web.Status.NodePort), 0o600)
}
