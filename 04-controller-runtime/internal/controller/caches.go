package controller

import (
	"context"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
)

// byNodePort is an index of the MyWebs that ask for a node port, and of the Services that hold one. An
// index answers "which objects have this value?" without looking at all of them.
const byNodePort = "nodePort"

// CacheOptions are for the manager's cache. It holds the MyWebs and everything that may be, or stand in
// the way of, a child of one: of all namespaces, or of the named ones only.
func CacheOptions(namespaces []string) cache.Options {
	told := newRepeats()
	options := cache.Options{
		DefaultTransform: Trim,
		DefaultWatchErrorHandler: func(ctx context.Context, reflector *toolscache.Reflector, err error) {
			if kind := reflector.TypeDescription(); told.isNew(kind, err.Error()) {
				log.FromContext(ctx).Error(err, "Could not follow objects, trying again", "kind", kind)
			}
		},
	}
	for _, namespace := range namespaces {
		if options.DefaultNamespaces == nil {
			options.DefaultNamespaces = map[string]cache.Config{}
		}
		options.DefaultNamespaces[namespace] = cache.Config{}
	}
	return options
}

// kinds are what the cache holds: one watch for each, in each namespace that is watched apart.
func kinds() []client.Object {
	return []client.Object{&webv1.MyWeb{}, &corev1.ConfigMap{}, &appsv1.Deployment{}, &corev1.Service{}}
}

// fillCache makes the cache follow all kinds from the start, and lays its indexes. A replica that waits for
// its lease has a full cache then, and begins at once when it gets it.
func fillCache(ctx context.Context, c cache.Cache) error {
	for _, kind := range kinds() {
		if _, err := c.GetInformer(ctx, kind, cache.BlockUntilSynced(false)); err != nil {
			return err
		}
	}
	if err := c.IndexField(ctx, &webv1.MyWeb{}, byNodePort, wantedPort); err != nil {
		return err
	}
	return c.IndexField(ctx, &corev1.Service{}, byNodePort, heldPorts)
}

// Trim is a cache.TransformFunc: what it returns is kept instead of what the API server sent. Managed
// fields go from everything: nobody here reads them, and they are the larger half of many objects. Of
// objects that belong to no MyWeb only what names them stays, and the ports that a Service holds: they
// must be seen, for they may stand in the way, but they may be large.
func Trim(obj any) (any, error) {
	o, ok := obj.(client.Object)
	if !ok {
		return obj, nil
	}
	o.SetManagedFields(nil)
	if _, ok := obj.(*webv1.MyWeb); ok || belongsToMyWeb(o) {
		return obj, nil
	}
	name := metav1.ObjectMeta{Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(),
		ResourceVersion: o.GetResourceVersion(), OwnerReferences: o.GetOwnerReferences()}
	switch obj := obj.(type) {
	case *corev1.Service:
		rest := &corev1.Service{ObjectMeta: name}
		rest.Spec.HealthCheckNodePort = obj.Spec.HealthCheckNodePort
		for _, port := range obj.Spec.Ports {
			rest.Spec.Ports = append(rest.Spec.Ports, corev1.ServicePort{NodePort: port.NodePort})
		}
		return rest, nil
	case *corev1.ConfigMap:
		return &corev1.ConfigMap{ObjectMeta: name}, nil
	case *appsv1.Deployment:
		return &appsv1.Deployment{ObjectMeta: name}, nil
	}
	return obj, nil
}

// wantedPort is the node port that a MyWeb asks for.
func wantedPort(obj client.Object) []string {
	if port := obj.(*webv1.MyWeb).Spec.NodePortNumber; port != nil {
		return []string{strconv.Itoa(int(*port))}
	}
	return nil
}

// heldPorts are the node ports that nobody else can have while the Service exists.
func heldPorts(obj client.Object) (ports []string) {
	service := obj.(*corev1.Service)
	for _, port := range service.Spec.Ports {
		if port.NodePort != 0 {
			ports = append(ports, strconv.Itoa(int(port.NodePort)))
		}
	}
	if port := service.Spec.HealthCheckNodePort; port != 0 {
		ports = append(ports, strconv.Itoa(int(port)))
	}
	return ports
}
