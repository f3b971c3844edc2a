package operator

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
	"example.com/operator-workshop/04-controller-runtime/internal/myweb"
	"example.com/operator-workshop/04-controller-runtime/internal/nodeport"
)

// CacheOptions are for the manager's cache, of all namespaces or of the named ones. It holds the MyWebs and
// everything that may be a child of one, or in conflict with it.
func CacheOptions(namespaces []string) cache.Options {
	options := cache.Options{DefaultTransform: Trim}
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
	return nodeport.Index(ctx, c) // starts the informers of the other two kinds
}

// Demanded by TestTrim, and by the memory that internal/cachecost measures: the caches hold all objects of three
// kinds in the cluster, because any of them may be in conflict with a child, and no MyWeb owns most of them.

// Trim is a cache.TransformFunc: the cache keeps its result instead of the object from the API server. The operator
// does not read managed fields, the larger half of many objects. Of an object that no MyWeb owns it reads only the
// name, the owners and the node ports.
func Trim(obj any) (any, error) {
	o, ok := obj.(client.Object)
	if !ok {
		return obj, nil
	}
	o.SetManagedFields(nil)
	if _, ok := obj.(*webv1.MyWeb); ok || myweb.Kind.UID(o) != "" {
		if deployment, ok := obj.(*appsv1.Deployment); ok {
			share(deployment)
		}
		return obj, nil
	}
	o.SetAnnotations(nil)
	o.SetLabels(nil)
	switch o := o.(type) {
	case *corev1.ConfigMap:
		o.Data, o.BinaryData = nil, nil
	case *appsv1.Deployment:
		o.Spec, o.Status = appsv1.DeploymentSpec{}, appsv1.DeploymentStatus{}
	}
	return obj, nil
}
