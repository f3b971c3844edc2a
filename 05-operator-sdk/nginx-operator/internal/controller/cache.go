package controller

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apilabels "k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	proxyv1alpha1 "github.com/example/nginx-operator/api/v1alpha1"
	"github.com/example/nginx-operator/internal/program"
)

// Indexes find the objects that have a value without reading all of them.
const (
	contentField    = "content"    // Nginxes, by the ConfigMap that they name
	controllerField = "controller" // pods and ReplicaSets, by the UID of their controller
)

// contentHash is the annotation of pods by which changed content replaces them, and the only key of a
// ConfigMap in the cache. A ConfigMap of the API cannot have a key with a slash.
const contentHash = "proxy.example.com/content-hash"

func indexContent(obj client.Object) []string {
	if content := obj.(*proxyv1alpha1.Nginx).Spec.ContentRef; content != nil {
		return []string{content.Name}
	}
	return nil
}

func indexController(obj client.Object) []string {
	if controller := metav1.GetControllerOfNoCopy(obj); controller != nil {
		return []string{string(controller.UID)}
	}
	return nil
}

// replicaSet returns an empty object for the metadata of a ReplicaSet. The API server sends only the metadata.
func replicaSet() *metav1.PartialObjectMetadata {
	meta := &metav1.PartialObjectMetadata{}
	meta.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))
	return meta
}

// A PodCache holds pods and ReplicaSets. It is separate from the manager's cache, because a label selects the objects
// that the API server sends: a cluster has many pods, each changes often, and few belong to an Nginx.
type PodCache struct{ cache.Cache }

// NeedLeaderElection lets the cache sync while another replica leads.
func (PodCache) NeedLeaderElection() bool { return false }

// NewPodCache returns a cache that the manager runs. The manager is ready only when this cache has synced. The
// pods of an Nginx always have the labels of the cache's selector, or their ReplicaSet releases them; the same
// is true of a ReplicaSet and its Deployment. A pod without other labels, such as managed-by, stays the Nginx's.
func NewPodCache(mgr ctrl.Manager, namespaces []string) (PodCache, error) {
	ours, err := apilabels.NewRequirement(labelName, selection.Equals, []string{"nginx"})
	if err != nil {
		return PodCache{}, err
	}
	named, err := apilabels.NewRequirement(labelInstance, selection.Exists, nil)
	if err != nil {
		return PodCache{}, err
	}
	options := program.CacheOptions(namespaces, Trim)
	options.Scheme, options.Mapper, options.HTTPClient = mgr.GetScheme(), mgr.GetRESTMapper(), mgr.GetHTTPClient()
	options.DefaultLabelSelector = apilabels.NewSelector().Add(*ours, *named)
	pods, err := cache.New(mgr.GetConfig(), options)
	if err != nil {
		return PodCache{}, fmt.Errorf("make the cache of pods: %w", err)
	}
	return PodCache{pods}, errors.Join(
		pods.IndexField(context.Background(), &corev1.Pod{}, controllerField, indexController),
		pods.IndexField(context.Background(), replicaSet(), controllerField, indexController),
		mgr.Add(PodCache{pods}),
		mgr.AddReadyzCheck("pods", func(r *http.Request) error {
			ctx, cancel := context.WithTimeout(r.Context(), 100*time.Millisecond)
			defer cancel()
			if !pods.WaitForCacheSync(ctx) {
				return errors.New("the cache of pods has not synced yet")
			}
			return nil
		}),
	)
}

// Trim is a cache.TransformFunc: the cache stores its result instead of the object from the API server (demanded by
// TestWhatTheCachesKeep). Of a pod it keeps the owner and the phase, of a ConfigMap the hash of its data. Of a
// Deployment or a Service that no Nginx owns it keeps only the metadata that identifies it. A trimmed object is not
// changed: the first list is transformed twice.
func Trim(obj any) (any, error) {
	o, ok := obj.(client.Object)
	if !ok || Owner.UID(o) != "" {
		return obj, nil
	}
	name := program.NameOf(o)
	switch obj := obj.(type) {
	case *appsv1.Deployment:
		return &appsv1.Deployment{ObjectMeta: name}, nil
	case *corev1.Service:
		return &corev1.Service{ObjectMeta: name}, nil
	case *corev1.ConfigMap:
		hash, err := hashOf(obj)
		return &corev1.ConfigMap{ObjectMeta: name, Data: map[string]string{contentHash: hash}}, err
	case *corev1.Pod:
		return &corev1.Pod{ObjectMeta: chainOf(o), Status: corev1.PodStatus{Phase: obj.Status.Phase}}, nil
	case *metav1.PartialObjectMetadata:
		return &metav1.PartialObjectMetadata{TypeMeta: obj.TypeMeta, ObjectMeta: chainOf(o)}, nil
	}
	return obj, nil
}

// chainOf returns the metadata of a pod or a ReplicaSet that identifies it and its Nginx, and shows whether it is
// being deleted.
func chainOf(obj client.Object) metav1.ObjectMeta {
	kept := program.NameOf(obj)
	kept.DeletionTimestamp = obj.GetDeletionTimestamp()
	kept.Labels = map[string]string{labelInstance: obj.GetLabels()[labelInstance]}
	return kept
}

// hashOf returns the hash of the data of a ConfigMap.
func hashOf(content *corev1.ConfigMap) (string, error) {
	if hash := content.Data[contentHash]; hash != "" {
		return hash, nil
	}
	data, err := json.Marshal(map[string]any{"data": content.Data, "binaryData": content.BinaryData})
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8]), err
}

// podChanged reports whether an update of a pod or a ReplicaSet matters. Most updates do not, because they change
// only fields that the cache does not keep.
func podChanged(e event.UpdateEvent) bool {
	old, now := e.ObjectOld, e.ObjectNew
	return phaseOf(old) != phaseOf(now) || old.GetUID() != now.GetUID() ||
		old.GetDeletionTimestamp().IsZero() != now.GetDeletionTimestamp().IsZero() ||
		old.GetLabels()[labelInstance] != now.GetLabels()[labelInstance] ||
		!slices.Equal(indexController(old), indexController(now))
}

func phaseOf(obj client.Object) corev1.PodPhase {
	if pod, ok := obj.(*corev1.Pod); ok {
		return pod.Status.Phase
	}
	return ""
}
