package controller

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/memcached-operator/internal/program"
)

// Trim is a cache.TransformFunc: the cache stores its result instead of the object from the API server (demanded by
// TestWhatTheCacheKeeps). The cache holds all ConfigMaps, Deployments and Services, because a Memcached may name any of
// them, or a child may have the same name. Of a ConfigMap it keeps only the keys that the operator reads. Of an
// object that no Memcached owns it keeps only the metadata that identifies it.
func Trim(obj any) (any, error) {
	o, ok := obj.(client.Object)
	if !ok || Owner.UID(o) != "" {
		return obj, nil
	}
	switch obj := obj.(type) {
	case *appsv1.Deployment:
		return &appsv1.Deployment{ObjectMeta: program.NameOf(obj)}, nil
	case *corev1.Service:
		return &corev1.Service{ObjectMeta: program.NameOf(obj)}, nil
	case *corev1.ConfigMap:
		kept := &corev1.ConfigMap{ObjectMeta: program.NameOf(obj)}
		for _, key := range []string{KeyMemory, KeyConnections, KeyVerbose} {
			if value, found := obj.Data[key]; found {
				if kept.Data == nil {
					kept.Data = map[string]string{}
				}
				kept.Data[key] = value
			}
		}
		return kept, nil
	}
	return obj, nil
}
