package controller

import (
	"context"
	"errors"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
	"example.com/operator-workshop/04-controller-runtime/internal/hardening"
)

// CacheOptions are for the manager's cache, of all namespaces or of the named ones. It holds the MyWebs and
// everything that may be a child of one, or in conflict with it.
func CacheOptions(namespaces []string) cache.Options {
	options := cache.Options{DefaultTransform: hardening.Trim}
	if len(namespaces) > 0 {
		options.DefaultNamespaces = map[string]cache.Config{}
	}
	for _, namespace := range namespaces {
		options.DefaultNamespaces[namespace] = cache.Config{}
	}
	return options
}

// startInformers makes the cache follow all kinds from the start. Demanded by
// TestOneOfTwoReplicasWorksAndTheOtherTakesOver: a replica that waits for its lease has a full cache, and begins
// at once when it gets the lease.
func startInformers(ctx context.Context, c cache.Cache) error {
	for _, kind := range []client.Object{&corev1.ConfigMap{}, &appsv1.Deployment{}} {
		if _, err := c.GetInformer(ctx, kind, cache.BlockUntilSynced(false)); err != nil {
			return err
		}
	}
	return errors.Join( // these start their informers, too
		c.IndexField(ctx, &webv1.MyWeb{}, byNodePort, askedNodePort),
		c.IndexField(ctx, &corev1.Service{}, byNodePort, nodePorts))
}

// How long a reconcile keeps its worker until the cache has what this process wrote, and when to try again
// after that. Almost always it is a matter of milliseconds. But a watch can hang; and the client, which waits
// for an event, gets none for an object that was made and deleted in a gap of the watch.
const (
	readTimeout = time.Second
	readRetry   = 5 * time.Second
)

// read gets an object from the cache. It waits until the cache holds what this process wrote, as the checks of
// fault/10 demand, but not for long, as TestOwnWritesThatTheCacheDoesNotSeeDelayTheirMyWebOnly demands: the worker
// would be lost for all other MyWebs.
func (r *Reconciler) read(ctx context.Context, key client.ObjectKey, obj client.Object) error {
	waiting, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	err := r.Get(waiting, key, obj)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return hardening.RequeueAfter(readRetry)
	}
	return err
}

// finishInFlight lets a reconcile that is under way when the manager stops end. Demanded by
// behaviour/14-leader-stops: a cancelled request might yet be carried out, when the next leader works
// already. What is queued is dropped; the next leader finds it again in its cache.
func finishInFlight(next reconcile.Reconciler) reconcile.Reconciler {
	return reconcile.Func(func(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
		if ctx.Err() != nil {
			return ctrl.Result{}, nil
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reconcileTimeout)
		defer cancel()
		return next.Reconcile(ctx, req)
	})
}
