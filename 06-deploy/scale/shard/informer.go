package shard

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// Supported reports whether the API server filters by shardSelector. A server without the feature gate
// ShardedListAndWatch ignores the parameter: it answers with all objects, and without shardInfo.
func (r Range) Supported(ctx context.Context, cfg *rest.Config) (bool, error) {
	c, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return false, err
	}
	// Of a custom resource the list has no shardInfo, although it is filtered. So the question is about ConfigMaps.
	list, err := c.CoreV1().ConfigMaps("").List(ctx, metav1.ListOptions{ShardSelector: r.Selector(), Limit: 1})
	if err != nil {
		return false, fmt.Errorf("ask the API server for a shard: %w", err)
	}
	return list.ShardInfo != nil, nil
}

// NewInformer is for cache.Options: the informers of a cache list and watch the objects of the range.
//
// The API server's filter saves bytes and memory; the filter here makes it safe. Another API server of the cluster, or
// the same one after a restart, may not have the feature gate: its answers have all objects.
func (r Range) NewInformer(lw cache.ListerWatcher, example runtime.Object, resync time.Duration,
	indexers cache.Indexers) cache.SharedIndexInformer {
	all := cache.ToListerWatcherWithContext(lw)
	return cache.NewSharedIndexInformer(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.ShardSelector = r.Selector()
			list, err := all.ListWithContext(ctx, options)
			if err != nil {
				return nil, err
			}
			return list, r.filter(list)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.ShardSelector = r.Selector()
			events, err := all.WatchWithContext(ctx, options)
			if err != nil {
				return nil, err
			}
			return watch.Filter(events, func(e watch.Event) (watch.Event, bool) { return e, r.passes(e) }), nil
		},
	}, example, resync, indexers)
}

// passes reports whether an event is for this shard. Bookmarks and errors are for every watch.
func (r Range) passes(e watch.Event) bool {
	o, err := meta.Accessor(e.Object)
	return err != nil || e.Type == watch.Bookmark || e.Type == watch.Error || r.Has(o.GetNamespace())
}

// filter removes from a list the objects of other shards.
func (r Range) filter(list runtime.Object) error {
	items, err := meta.ExtractList(list)
	if err != nil {
		return err
	}
	var kept []runtime.Object
	for _, item := range items {
		if o, err := meta.Accessor(item); err == nil && r.Has(o.GetNamespace()) {
			kept = append(kept, item)
		}
	}
	if len(kept) == len(items) { // the API server filtered
		return nil
	}
	return meta.SetList(list, kept)
}
