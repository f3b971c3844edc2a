// Package record keeps a record for each MyWeb in the folder of a name server, which is outside the cluster.
package record

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
)

// finalizer keeps a deleted MyWeb until its record is removed.
const finalizer = "operator.k8s-summit.org/record"

// Reconciler writes the record of a MyWeb, and removes it when the MyWeb is deleted.
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
	if !web.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.cleanUp(ctx, web)
	}
	if controllerutil.AddFinalizer(web, finalizer) { // before the record: the program may end between the two writes
		if err := r.Update(ctx, web); err != nil {
			return ctrl.Result{}, fmt.Errorf("add the finalizer of MyWeb %s: %w", req, err)
		}
	}
	return ctrl.Result{}, r.writeRecord(web)
}

// cleanUp removes the record of a deleted MyWeb, then the finalizer. Without the finalizer the record was removed
// before, and its name may belong to another website.
func (r *Reconciler) cleanUp(ctx context.Context, web *webv1.MyWeb) error {
	if !controllerutil.ContainsFinalizer(web, finalizer) {
		return nil
	}
	err := os.Remove(r.recordOf(web))
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // a program that ended here may have removed the record
		return err
	}
	controllerutil.RemoveFinalizer(web, finalizer)
	if err := r.Update(ctx, web); err != nil {
		return fmt.Errorf("remove the finalizer of MyWeb %s: %w", client.ObjectKeyFromObject(web), err)
	}
	return nil
}

// recordOf returns the file of a MyWeb's record.
func (r *Reconciler) recordOf(web *webv1.MyWeb) string {
	return filepath.Join(r.Folder, web.Namespace+"."+web.Name)
}

// writeRecord writes the node port of a MyWeb, or 0 while it has none.
func (r *Reconciler) writeRecord(web *webv1.MyWeb) error {
	return os.WriteFile(r.recordOf(web), fmt.Appendln(nil, web.Status.NodePort), 0o600)
}
