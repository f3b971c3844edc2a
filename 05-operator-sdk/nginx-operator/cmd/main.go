// Command nginx-operator turns Nginxes into running pods behind a Service, and reports which pods run.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlcontroller "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	proxyv1alpha1 "github.com/example/nginx-operator/api/v1alpha1"
	"github.com/example/nginx-operator/internal/controller"
	"github.com/example/nginx-operator/internal/owned"
	"github.com/example/nginx-operator/internal/program"
	// +kubebuilder:scaffold:imports
)

var (
	scheme   = runtime.NewScheme()
	setupLog = ctrl.Log.WithName("setup")
)

// reconcileTimeout limits one reconcile. A server that does not answer must not keep a worker forever.
const reconcileTimeout = time.Minute

func init() {
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))

	utilruntime.Must(proxyv1alpha1.AddToScheme(scheme))
	// +kubebuilder:scaffold:scheme
}

func main() {
	var o program.Options
	o.Bind(flag.CommandLine)
	flag.Parse()
	if err := run(ctrl.SetupSignalHandler(), o); err != nil {
		fmt.Fprintln(os.Stderr, "nginx-operator:", err)
		os.Exit(1)
	}
}

// run runs the operator until ctx ends. The error is the reason why it could not start, or why it failed.
func run(ctx context.Context, o program.Options) error {
	image, err := program.DefaultImage("NGINX_IMAGE", controller.DefaultImage)
	if err != nil {
		return err
	}
	mgr, err := program.NewManager(ctx, o, program.Operator{
		Name:      "nginx-operator",
		Scheme:    scheme,
		Kind:      controller.Kind,
		Transform: controller.Trim,
	})
	if err != nil {
		return err
	}
	pods, err := controller.NewPodCache(mgr, o.Namespaces)
	if err != nil {
		return err
	}
	c := mgr.GetClient()
	core := &controller.NginxReconciler{Client: c, Pods: pods,
		Applier: owned.ServerSideApply{Client: c, FieldOwner: controller.FieldOwner},
		Events:  mgr.GetEventRecorder("nginx-operator"), Now: time.Now, Pace: controller.NewStatusPace(), Image: image}
	nginxes := reconcile.AsReconciler(c, core)
	settings := ctrlcontroller.Options{MaxConcurrentReconciles: o.Workers, ReconciliationTimeout: reconcileTimeout}
	if err := controller.SetupWithManager(mgr, pods, nginxes, settings); err != nil {
		return fmt.Errorf("set up the controller of Nginxes: %w", err)
	}
	// +kubebuilder:scaffold:builder
	setupLog.Info("Starting", "image", image)
	return program.Run(ctx, mgr)
}
