package main

import (
	"context"

	shardingv1alpha1 "github.com/timebertt/kubernetes-controller-sharding/pkg/apis/sharding/v1alpha1"
	shardlease "github.com/timebertt/kubernetes-controller-sharding/pkg/shard/lease"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/uuid"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"example.com/operator-workshop/06-deploy/scale/internal/operator"
	"example.com/operator-workshop/06-deploy/scale/shard"
)

// A way is how the replicas of an operator divide the work.
type way struct {
	// restrict makes the cache have only the objects of this replica.
	restrict func(*cache.Options)
	// lock returns the lease without which the replica does not write. held reports whether it is held.
	lock func(held func() bool) resourcelock.Interface
	// add adds the controller to the manager.
	add func(ctrl.Manager) error
}

// choose returns the way that the flags name. When the API server cannot filter, one replica leads.
func choose(ctx context.Context, cfg *rest.Config, o options) (way, error) {
	if o.ring != "" {
		return ringMember(cfg, o)
	}
	part, err := shard.Parse(o.shard, o.bounds)
	if err != nil {
		return way{}, err
	}
	if part != shard.All {
		supported, err := part.Supported(ctx, cfg)
		if err != nil {
			return way{}, err
		}
		if !supported {
			ctrl.Log.Info("The API server does not filter by shardSelector (feature gate ShardedListAndWatch): " +
				"this replica works as leader of all namespaces, or waits")
			part = shard.All
		}
	}
	leases, err := coordinationclient.NewForConfig(cfg)
	return way{
		restrict: func(c *cache.Options) {
			if part != shard.All {
				c.NewInformer = part.NewInformer
			}
		},
		lock: func(held func() bool) resourcelock.Interface {
			return shard.NewLock(leases, o.namespace, o.replica+"_"+string(uuid.NewUUID()), part, held)
		},
		add: operator.AddController,
	}, err
}

// ringMember is the way of kubernetes-controller-sharding: its sharder labels each object with the name of a replica.
func ringMember(cfg *rest.Config, o options) (way, error) {
	lock, err := shardlease.NewResourceLock(rest.CopyConfig(cfg), shardlease.Options{ControllerRingName: o.ring,
		LeaseNamespace: o.namespace, ShardName: o.replica})
	return way{
		restrict: func(c *cache.Options) {
			c.DefaultLabelSelector = labels.SelectorFromSet(labels.Set{shardingv1alpha1.LabelShard(o.ring): o.replica})
		},
		lock: func(func() bool) resourcelock.Interface { return lock },
		add:  func(mgr ctrl.Manager) error { return operator.AddRingController(mgr, o.ring, o.replica) },
	}, err
}
