// Stage 5, update: write the differences, also into existing children.
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
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
	"example.com/operator-workshop/04-controller-runtime/internal/myweb"
	"example.com/operator-workshop/04-controller-runtime/stages/objects"
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
	configMap, deployment, service := objects.NewConfigMap(web), objects.NewDeployment(web), objects.NewService(web)
	for _, child := range []client.Object{configMap, deployment, service} {
		if err := r.updateChild(ctx, web, child); err != nil {
			return ctrl.Result{}, fmt.Errorf("update %T %s: %w", child, req, err) // logged, and tried again with backoff
		}
	}
	return ctrl.Result{}, r.updateStatus(ctx, web, deployment, service)
}

// updateChild creates a child, or gets it, sets our fields and updates it when that changed something. Afterwards child
// is the object in the cluster.
func (r *Reconciler) updateChild(ctx context.Context, web *webv1.MyWeb, child client.Object) error {
	desired := child.DeepCopyObject().(client.Object)
	result, err := controllerutil.CreateOrUpdate(ctx, r.Client, child, func() error {
		child.SetLabels(desired.GetLabels())
		switch child := child.(type) {
		case *corev1.ConfigMap:
			child.Data = desired.(*corev1.ConfigMap).Data
		case *appsv1.Deployment:
			child.Spec = desired.(*appsv1.Deployment).Spec
		case *corev1.Service:
			spec := desired.(*corev1.Service).Spec
			child.Spec.Type, child.Spec.Selector, child.Spec.Ports = spec.Type, spec.Selector, spec.Ports
		}
		return controllerutil.SetControllerReference(web, child, r.Scheme())
	})
	if result != controllerutil.OperationResultNone {
		log.FromContext(ctx).Info("Wrote child", "kind", fmt.Sprintf("%T", child), "result", result)
	}
	return err
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
