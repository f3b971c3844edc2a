package controller

import (
	"context"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	appsinformers "k8s.io/client-go/informers/apps/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	webv1 "example.com/operator-workshop/03-client-go-controller/pkg/apis/myweb/v1"
	"example.com/operator-workshop/03-client-go-controller/pkg/generated/clientset/versioned"
	"example.com/operator-workshop/03-client-go-controller/pkg/generated/informers/externalversions"
	webinformers "example.com/operator-workshop/03-client-go-controller/pkg/generated/informers/externalversions/myweb/v1"
)

// Names of indexes. An index answers "which objects have this value?" without looking at all of them.
const (
	byUID      = "uid"
	byNodePort = "nodePort"
)

// Caches hold what the controller reads: the MyWebs and everything that may be, or stand in the way of,
// a child of one. Each is filled and followed by one informer, over one watch.
type Caches struct {
	Webs        webinformers.MyWebInformer
	ConfigMaps  coreinformers.ConfigMapInformer
	Deployments appsinformers.DeploymentInformer
	Services    coreinformers.ServiceInformer

	own     externalversions.SharedInformerFactory
	builtIn informers.SharedInformerFactory
}

// NewCaches returns caches that are still empty. What comes in passes through trim first; Trim is the
// one to use, nil keeps everything. An informer that cannot read says why, once, and tries again.
func NewCaches(kube kubernetes.Interface, web versioned.Interface, trim cache.TransformFunc) (*Caches, error) {
	// No resync: it would repeat what the cache says every so often, and help only a controller that
	// forgets to try again.
	own := externalversions.NewSharedInformerFactoryWithOptions(web, 0, externalversions.WithTransform(trim))
	builtIn := informers.NewSharedInformerFactoryWithOptions(kube, 0, informers.WithTransform(trim))
	c := &Caches{
		Webs:        own.Operator().V1().MyWebs(),
		ConfigMaps:  builtIn.Core().V1().ConfigMaps(),
		Deployments: builtIn.Apps().V1().Deployments(),
		Services:    builtIn.Core().V1().Services(),
		own:         own,
		builtIn:     builtIn,
	}
	if err := c.Webs.Informer().AddIndexers(cache.Indexers{byUID: uidOf, byNodePort: wantedPort}); err != nil {
		return nil, err
	}
	if err := c.Services.Informer().AddIndexers(cache.Indexers{byNodePort: heldPorts}); err != nil {
		return nil, err
	}
	told := newRepeats()
	for resource, informer := range c.all() {
		err := informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, _ *cache.Reflector, err error) {
			if ctx.Err() == nil && told.isNew(resource, err.Error()) {
				klog.FromContext(ctx).Error(err, "Could not follow objects, trying again", "resource", resource)
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return c, nil
}

// all are the informers, by the resource that they watch.
func (c *Caches) all() map[string]cache.SharedIndexInformer {
	return map[string]cache.SharedIndexInformer{
		"mywebs":      c.Webs.Informer(),
		"configmaps":  c.ConfigMaps.Informer(),
		"deployments": c.Deployments.Informer(),
		"services":    c.Services.Informer(),
	}
}

// Start begins to fill the caches, and follows the API server until ctx ends.
func (c *Caches) Start(ctx context.Context) {
	c.own.StartWithContext(ctx)
	c.builtIn.StartWithContext(ctx)
}

// Wait returns true when the caches are filled, false when ctx ends before.
func (c *Caches) Wait(ctx context.Context) bool {
	return c.own.WaitForCacheSyncWithContext(ctx).AsError() == nil &&
		c.builtIn.WaitForCacheSyncWithContext(ctx).AsError() == nil
}

// Filled reports whether the caches hold all that there was when they were started.
func (c *Caches) Filled() bool {
	for _, informer := range c.all() {
		if !informer.HasSynced() {
			return false
		}
	}
	return true
}

// Shutdown waits until the informers have ended. The context of Start must have ended before.
func (c *Caches) Shutdown() {
	c.own.Shutdown()
	c.builtIn.Shutdown()
}

// Trim is a cache.TransformFunc: what it returns is kept instead of what the API server sent. Managed
// fields go from everything: nobody here reads them, and they are the larger half of many objects. Of
// objects that belong to no MyWeb only what names them stays, and the ports that a Service holds: they
// must be seen, for they may stand in the way, but they may be large.
func Trim(obj any) (any, error) {
	o, ok := obj.(object)
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

func uidOf(obj any) ([]string, error) {
	return []string{string(obj.(*webv1.MyWeb).UID)}, nil
}

// wantedPort is the node port that a MyWeb asks for.
func wantedPort(obj any) ([]string, error) {
	if port := obj.(*webv1.MyWeb).Spec.NodePortNumber; port != nil {
		return []string{strconv.Itoa(int(*port))}, nil
	}
	return nil, nil
}

// heldPorts are the node ports that nobody else can have while the Service exists.
func heldPorts(obj any) ([]string, error) {
	service := obj.(*corev1.Service)
	var ports []string
	for _, port := range service.Spec.Ports {
		if port.NodePort != 0 {
			ports = append(ports, strconv.Itoa(int(port.NodePort)))
		}
	}
	if port := service.Spec.HealthCheckNodePort; port != 0 {
		ports = append(ports, strconv.Itoa(int(port)))
	}
	return ports, nil
}
