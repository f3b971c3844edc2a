package controller

import (
	"context"

	"k8s.io/client-go/informers"
	appsinformers "k8s.io/client-go/informers/apps/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	webv1 "example.com/operator-workshop/03-client-go-controller/pkg/apis/myweb/v1"
	"example.com/operator-workshop/03-client-go-controller/pkg/generated/clientset/versioned"
	"example.com/operator-workshop/03-client-go-controller/pkg/generated/informers/externalversions"
	webinformers "example.com/operator-workshop/03-client-go-controller/pkg/generated/informers/externalversions/myweb/v1"
)

// byUID is an index of the MyWebs. An index answers "which objects have this value?" without a look at all.
const byUID = "uid"

// Informers fill the caches that the controller reads: the MyWebs, and all objects of the kinds of their
// children. Each informer lists its kind once and then follows one watch.
type Informers struct {
	MyWebs      webinformers.MyWebInformer
	ConfigMaps  coreinformers.ConfigMapInformer
	Deployments appsinformers.DeploymentInformer
	Services    coreinformers.ServiceInformer

	own     externalversions.SharedInformerFactory
	builtIn informers.SharedInformerFactory
}

// NewInformers returns informers that are not started. Every object passes through transform before it is
// stored: use hardening.Trim, or nil to keep everything.
func NewInformers(
	kube kubernetes.Interface, web versioned.Interface, transform cache.TransformFunc,
) (*Informers, error) {
	// No resync: it repeats what the cache holds, and only helps a controller that forgets to retry.
	own := externalversions.NewSharedInformerFactoryWithOptions(web, 0, externalversions.WithTransform(transform))
	builtIn := informers.NewSharedInformerFactoryWithOptions(kube, 0, informers.WithTransform(transform))
	i := &Informers{
		MyWebs:      own.Operator().V1().MyWebs(),
		ConfigMaps:  builtIn.Core().V1().ConfigMaps(),
		Deployments: builtIn.Apps().V1().Deployments(),
		Services:    builtIn.Core().V1().Services(),
		own:         own,
		builtIn:     builtIn,
	}
	if err := i.MyWebs.Informer().AddIndexers(cache.Indexers{byUID: uidOf, byNodePort: askedNodePort}); err != nil {
		return nil, err
	}
	if err := i.Services.Informer().AddIndexers(cache.Indexers{byNodePort: nodePorts}); err != nil {
		return nil, err
	}
	return i, i.logWatchErrors()
}

// byKind are the informers by the kind of their objects.
func (i *Informers) byKind() map[string]cache.SharedIndexInformer {
	return map[string]cache.SharedIndexInformer{
		"MyWeb":      i.MyWebs.Informer(),
		"ConfigMap":  i.ConfigMaps.Informer(),
		"Deployment": i.Deployments.Informer(),
		"Service":    i.Services.Informer(),
	}
}

// stores are the caches by the kind of their objects.
func (i *Informers) stores() map[string]cache.Store {
	stores := map[string]cache.Store{}
	for kind, informer := range i.byKind() {
		stores[kind] = informer.GetStore()
	}
	return stores
}

// Start starts the informers. They run until ctx ends.
func (i *Informers) Start(ctx context.Context) {
	i.own.StartWithContext(ctx)
	i.builtIn.StartWithContext(ctx)
}

// WaitForCacheSync returns true when the caches have synced, false when ctx ends before.
func (i *Informers) WaitForCacheSync(ctx context.Context) bool {
	return i.own.WaitForCacheSyncWithContext(ctx).AsError() == nil &&
		i.builtIn.WaitForCacheSyncWithContext(ctx).AsError() == nil
}

// HasSynced reports whether the caches hold everything that existed when the informers were started.
func (i *Informers) HasSynced() bool {
	for _, informer := range i.byKind() {
		if !informer.HasSynced() {
			return false
		}
	}
	return true
}

// Shutdown waits until the informers have ended. The context of Start must have ended before.
func (i *Informers) Shutdown() {
	i.own.Shutdown()
	i.builtIn.Shutdown()
}

func uidOf(obj any) ([]string, error) {
	return []string{string(obj.(*webv1.MyWeb).UID)}, nil
}
