// Stage 6, apply: server-side apply. The operator owns the fields that it names, and leaves all others alone.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
	"example.com/operator-workshop/04-controller-runtime/internal/fields"
	"example.com/operator-workshop/04-controller-runtime/internal/myweb"
	"example.com/operator-workshop/04-controller-runtime/internal/owned"
)

// Reconciler is called for each MyWeb that was created, changed or deleted, or whose child was; and for all of them
// at the start.
type Reconciler struct{ client.Client }

// Reconcile brings the children of a MyWeb to the state that its spec asks for, and reports their state. It does not
// ask what happened: it reads the live state.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	web := &webv1.MyWeb{}
	if err := r.Get(ctx, req.NamespacedName, web); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err) // deleted: there is nothing to do
	}
	if !web.DeletionTimestamp.IsZero() { // being deleted: the garbage collector removes the children
		return ctrl.Result{}, nil
	}
	children := myweb.DesiredChildren(web)
	if err := r.observe(ctx, web, children); err != nil {
		return ctrl.Result{}, err // logged, and tried again with backoff
	}
	for _, child := range children {
		if err := r.applyChild(ctx, child); err != nil {
			return ctrl.Result{}, fmt.Errorf("apply %s %s: %w", child.Kind, req, err)
		}
	}
	deployment, service := myweb.LiveOf(children)
	return ctrl.Result{}, r.updateStatus(ctx, web, deployment, service)
}

// observe reads the live children.
func (r *Reconciler) observe(ctx context.Context, web *webv1.MyWeb, children []*owned.Child) error {
	for _, child := range children {
		live := child.Live.(client.Object)
		if err := r.Get(ctx, client.ObjectKeyFromObject(web), live); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

// applyChild applies a child unless it is up to date. Afterwards child.Live is the object in the cluster.
func (r *Reconciler) applyChild(ctx context.Context, child *owned.Child) error {
	// Every desired field must be there; other fields do not matter. An empty text, list or map counts as not desired:
	// an annotation that holds a hash of all fields makes up for that.
	if equality.Semantic.DeepDerivative(fields.Of(child.Desired), fields.Of(child.Live)) {
		return nil
	}
	err := r.Apply(ctx, child.Desired, client.FieldOwner(myweb.FieldOwner), client.ForceOwnership)
	if err != nil {
		return err
	}
	log.FromContext(ctx).Info("Applied child", "kind", child.Kind)
	return runtime.DefaultUnstructuredConverter.FromUnstructured(fields.Of(child.Desired), child.Live) // the answer
}

// updateStatus reports the state of the children, when it differs from the reported state. /status is a subresource:
// this update cannot change the spec, and it leaves the generation as it is.
func (r *Reconciler) updateStatus(ctx context.Context, web *webv1.MyWeb, deployment *appsv1.Deployment,
	service *corev1.Service) error {
	old := web.Status
	web.Status = myweb.StatusFor(web, deployment, service, nil, time.Now())
	if equality.Semantic.DeepEqual(old, web.Status) {
		return nil
	}
	if err := r.Status().Update(ctx, web); err != nil {
		return fmt.Errorf("update status of MyWeb %s: %w", client.ObjectKeyFromObject(web), err)
	}
	return nil
}

func main() {
	flag.Parse() // --kubeconfig is controller-runtime's own
	ctrl.SetLogger(zap.New(zap.UseDevMode(true)))
	if err := run(ctrl.SetupSignalHandler()); err != nil {
		fmt.Fprintln(os.Stderr, "myweb-operator:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	cfg, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme)) // ConfigMaps, Deployments, Services
	utilruntime.Must(webv1.AddToScheme(scheme))
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{Scheme: scheme, Metrics: server.Options{BindAddress: "0"}})
	if err != nil {
		return err
	}
	err = ctrl.NewControllerManagedBy(mgr).
		For(&webv1.MyWeb{}).
		Owns(&corev1.ConfigMap{}).
		Owns(&appsv1.Deployment{}).
		Owns(&corev1.Service{}).
		Complete(&Reconciler{mgr.GetClient()})
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}
