package main

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	webv1 "example.com/operator-workshop/06-deploy/scale/api/v1"
)

// A report is a line of the log: how many objects the cache has when it has synced.
type report struct {
	cache cache.Cache
	since time.Time
}

// NeedLeaderElection reports that a replica which waits for its lease has a cache, too.
func (report) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (r report) Start(ctx context.Context) error {
	if !r.cache.WaitForCacheSync(ctx) {
		return nil
	}
	objects := 0
	for _, kind := range []client.Object{&webv1.MyWeb{}, &corev1.ConfigMap{}, &appsv1.Deployment{}, &corev1.Service{}} {
		informer, err := r.cache.GetInformer(ctx, kind)
		if err != nil {
			return err
		}
		objects += len(informer.(toolscache.SharedIndexInformer).GetStore().ListKeys())
	}
	ctrl.Log.Info("The cache has synced", "objects", objects, "seconds", time.Since(r.since).Seconds())
	return nil
}
