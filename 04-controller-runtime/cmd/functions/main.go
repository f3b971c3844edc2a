// Command functions changes the page of a MyWeb, and reconciles it once. Built with -cover, it leaves the counters of
// this one reconcile in $GOCOVERDIR: the functions that a reader of the operator passes.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/coverage"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
	"example.com/operator-workshop/04-controller-runtime/internal/myweb"
	"example.com/operator-workshop/04-controller-runtime/internal/nodeport"
	"example.com/operator-workshop/04-controller-runtime/internal/operator"
)

func main() {
	ctrl.SetLogger(zap.New())
	if err := run(ctrl.SetupSignalHandler()); err != nil {
		fmt.Fprintln(os.Stderr, "functions:", err)
		os.Exit(1)
	}
}

// run reconciles the MyWeb of the sample until it is completed, and once more with another page. The manager runs no
// controller, so that nothing else reconciles.
func run(ctx context.Context) error {
	cfg, err := config.GetConfig()
	if err != nil {
		return err
	}
	if err := webv1.AddToScheme(scheme.Scheme); err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Client:  client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: new(true)}},
		Cache:   operator.CacheOptions(nil),
		Metrics: server.Options{BindAddress: "0"},
	})
	if err != nil {
		return err
	}
	if err := nodeport.Index(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	go func() { _ = mgr.Start(ctx) }() // the cache
	c := mgr.GetClient()
	// A read of a reconcile does not wait for a new informer.
	if err := errors.Join(c.List(ctx, &corev1.ConfigMapList{}), c.List(ctx, &appsv1.DeploymentList{})); err != nil {
		return err
	}
	reconciler := operator.Compose(operator.NewHardening(c, mgr.GetAPIReader()), mgr.GetEventRecorder(myweb.FieldOwner))
	web, sample := &webv1.MyWeb{}, ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "default", Name: "myweb"}}
	err = wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, 5*time.Minute, true,
		func(ctx context.Context) (bool, error) {
			if _, err := reconciler.Reconcile(ctx, sample); err != nil {
				return false, err
			}
			return web.Status.Completed, c.Get(ctx, sample.NamespacedName, web)
		})
	if err != nil {
		return err
	}
	web.Spec.PageContentHTML = new("<h1>Another page</h1>")
	if err := errors.Join(c.Update(ctx, web), c.Get(ctx, sample.NamespacedName, web)); err != nil { // waits for the cache
		return err
	}
	if err := coverage.ClearCounters(); err != nil {
		return err
	}
	_, err = reconciler.Reconcile(ctx, sample)
	return errors.Join(err, c.Get(ctx, sample.NamespacedName, web)) // the cache has the status: its indexes count, too
}
