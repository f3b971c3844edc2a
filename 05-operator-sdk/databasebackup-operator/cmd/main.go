// Command databasebackup-operator takes backups of databases on a schedule, and restores them.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	// Authentication plugins for cloud providers, for an operator that runs outside of the cluster.
	_ "k8s.io/client-go/plugin/pkg/client/auth"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	databasesv1 "github.com/example/databasebackup-operator/api/v1"
	"github.com/example/databasebackup-operator/internal/controller"
	"github.com/example/databasebackup-operator/internal/program"
	"github.com/example/databasebackup-operator/internal/webhook"
	webhookv1 "github.com/example/databasebackup-operator/internal/webhook/v1"
	// +kubebuilder:scaffold:imports
)

// kubebuilder and operator-sdk insert code at the markers. That code uses scheme, setupLog and mgr.
var (
	scheme   = runtime.NewScheme()
	setupLog = ctrl.Log.WithName("setup")
)

func init() {
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))

	utilruntime.Must(databasesv1.AddToScheme(scheme))
	// +kubebuilder:scaffold:scheme
}

func main() {
	var o options
	o.Bind(flag.CommandLine)
	o.webhooks.Bind(flag.CommandLine)
	o.allowed.Bind(flag.CommandLine)
	flag.Parse()
	if err := run(ctrl.SetupSignalHandler(), o); err != nil {
		fmt.Fprintln(os.Stderr, "databasebackup-operator:", err)
		os.Exit(1)
	}
}

type options struct {
	program.Options
	webhooks webhook.Options
	allowed  controller.Allowed
}

// run runs the operator until ctx ends. The error is the reason why it could not start, or why it failed.
func run(ctx context.Context, o options) error {
	var err error
	if o.allowed.Image, err = program.DefaultImage("PGBACKUP_IMAGE", ""); err != nil {
		return err
	}
	hooks, err := webhook.New(o.webhooks)
	if err != nil {
		return err
	}
	mgr, err := program.NewManager(ctx, o.Options, program.Operator{
		Name: "databasebackup-operator", Scheme: scheme, Kind: controller.BackupKind, Transform: controller.Trim,
		Webhooks: hooks.Server(),
	})
	if err != nil {
		return err
	}
	if err := setUpControllers(mgr, o.allowed, o.Workers); err != nil {
		return err
	}
	if hooks.Enabled() {
		if err := webhookv1.SetupDatabaseBackupWebhookWithManager(mgr, o.allowed.Image); err != nil {
			return fmt.Errorf("set up the webhook of DatabaseBackups: %w", err)
		}
	}
	// +kubebuilder:scaffold:builder
	if err := hooks.SetupWithManager(mgr); err != nil {
		return fmt.Errorf("set up webhooks: %w", err)
	}
	setupLog.Info("Starting", "image", o.allowed.Image, "namespaces", o.Namespaces, "webhooks", hooks.Enabled())
	return program.Run(ctx, mgr)
}

// setUpControllers adds both controllers to a manager. When the second kind is missing, the error says what to do, as
// for the first kind.
func setUpControllers(mgr ctrl.Manager, allowed controller.Allowed, workers int) error {
	restore := controller.RestoreKind
	if _, err := mgr.GetRESTMapper().RESTMapping(restore.GroupKind(), restore.Version); meta.IsNoMatchError(err) {
		return fmt.Errorf("the cluster does not know the kind %s: install the CRDs first (make install)", restore.Kind)
	}
	measured := controller.NewMetrics(mgr.GetCache(), clock.RealClock{})
	if err := mgr.Add(measured); err != nil {
		return fmt.Errorf("add metrics: %w", err)
	}
	base := controller.Base{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Events: mgr.GetEventRecorder("databasebackup-operator"),
		Clock: clock.RealClock{}, Allowed: allowed,
	}
	backups := &controller.DatabaseBackupReconciler{Base: base, Metrics: measured}
	if err := backups.SetupWithManager(mgr, workers); err != nil {
		return fmt.Errorf("set up the controller of DatabaseBackups: %w", err)
	}
	restores := &controller.DatabaseRestoreReconciler{Base: base}
	if err := restores.SetupWithManager(mgr, workers); err != nil {
		return fmt.Errorf("set up the controller of DatabaseRestores: %w", err)
	}
	return nil
}
