// Stage 2, create: get a child; when it is not found, create it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
	"example.com/operator-workshop/04-controller-runtime/stages/objects"
)

// Reconciler is called for each MyWeb that was created, changed or deleted, and for all of them at the start.
type Reconciler struct{ client.Client }

// Reconcile creates the missing children of a MyWeb. It does not ask what happened: it reads the live state.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	web := &webv1.MyWeb{}
	if err := r.Get(ctx, req.NamespacedName, web); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err) // deleted: there is nothing to do
	}
	configMap, deployment, service := objects.NewConfigMap(web), objects.NewDeployment(web), objects.NewService(web)
	for _, child := range []client.Object{configMap, deployment, service} {
		if err := r.createChild(ctx, child); err != nil {
			return ctrl.Result{}, fmt.Errorf("create %T %s: %w", child, req, err) // logged, and tried again with backoff
		}
	}
	return ctrl.Result{}, nil
}

// createChild creates a child when there is none of its name. Afterwards child is the object in the cluster.
func (r *Reconciler) createChild(ctx context.Context, child client.Object) error {
	err := r.Get(ctx, client.ObjectKeyFromObject(child), child)
	if !apierrors.IsNotFound(err) {
		return err
	}
	log.FromContext(ctx).Info("Creating child", "kind", fmt.Sprintf("%T", child))
	return r.Create(ctx, child)
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
		Complete(&Reconciler{mgr.GetClient()})
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}
