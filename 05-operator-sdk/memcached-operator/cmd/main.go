// Command memcached-operator turns Memcacheds into Deployments and Services.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	// Authentication plugins for cloud providers, for an operator that runs outside of the cluster.
	_ "k8s.io/client-go/plugin/pkg/client/auth"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	cachev1alpha1 "github.com/example/memcached-operator/api/v1alpha1"
	"github.com/example/memcached-operator/internal/controller"
	"github.com/example/memcached-operator/internal/operator"
	"github.com/example/memcached-operator/internal/owned"
	"github.com/example/memcached-operator/internal/program"
	"github.com/example/memcached-operator/internal/webhook"
	webhookv1alpha1 "github.com/example/memcached-operator/internal/webhook/v1alpha1"
	// +kubebuilder:scaffold:imports
)

// kubebuilder and operator-sdk insert code at the markers. That code uses scheme, setupLog and mgr.
var (
	scheme   = runtime.NewScheme()
	setupLog = ctrl.Log.WithName("setup")
)

func init() {
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))

	utilruntime.Must(cachev1alpha1.AddToScheme(scheme))
	// +kubebuilder:scaffold:scheme
}

func main() {
	var o options
	o.Bind(flag.CommandLine)
	o.webhooks.Bind(flag.CommandLine)
	flag.Parse()
	if err := run(ctrl.SetupSignalHandler(), o); err != nil {
		fmt.Fprintln(os.Stderr, "memcached-operator:", err)
		os.Exit(1)
	}
}

type options struct {
	program.Options
	webhooks webhook.Options
}

// run runs the operator until ctx ends. The error is the reason why it could not start, or why it failed.
func run(ctx context.Context, o options) error {
	image, err := program.DefaultImage("MEMCACHED_IMAGE", "memcached:1.6-alpine")
	if err != nil {
		return err
	}
	hooks, err := webhook.New(o.webhooks)
	if err != nil {
		return err
	}
	mgr, err := program.NewManager(ctx, o.Options, program.Operator{
		Name: "memcached-operator", Scheme: scheme, Kind: controller.Kind,
		Transform: controller.Trim, Webhooks: hooks.Server(),
	})
	if err != nil {
		return err
	}
	h := operator.NewHardening(controller.Owner, controller.FieldOwner, mgr.GetClient(), mgr.GetAPIReader())
	core := func(applier owned.Applier) reconcile.ObjectReconciler[*cachev1alpha1.Memcached] {
		recorder := mgr.GetEventRecorder("memcached-operator")
		return &controller.MemcachedReconciler{Client: h.Client, Applier: applier, Events: recorder,
			Now: h.Clock.Now, Image: image}
	}
	memcacheds := operator.Compose(h, core)
	settings := h.Options()
	settings.MaxConcurrentReconciles = o.Workers
	if err := controller.SetupWithManager(mgr, memcacheds, settings); err != nil {
		return fmt.Errorf("set up the controller of Memcacheds: %w", err)
	}
	if hooks.Enabled() {
		if err := webhookv1alpha1.SetupMemcachedWebhookWithManager(mgr); err != nil {
			return fmt.Errorf("set up the webhooks of Memcacheds: %w", err)
		}
	}
	// +kubebuilder:scaffold:builder
	if err := hooks.SetupWithManager(mgr); err != nil {
		return fmt.Errorf("set up webhooks: %w", err)
	}
	setupLog.Info("Starting", "image", image, "namespaces", o.Namespaces, "webhooks", hooks.Enabled())
	return program.Run(ctx, mgr)
}
