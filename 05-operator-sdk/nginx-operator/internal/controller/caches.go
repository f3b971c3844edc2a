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
	"github.com/example/nginx-operator/internal/owned"
	"github.com/example/nginx-operator/internal/program"
)

// Indexes answer "which objects have this value?" without looking at all of them.
const (
	byContent    = "content"    // Nginxes, by the ConfigMap that they name
	byController = "controller" // pods and ReplicaSets, by the UID of their controller
)

// contentHash is the annotation of pods that makes changed content roll them, and the only key of a
// ConfigMap in the cache. No ConfigMap of the API can have a key with a slash.
const contentHash = "proxy.example.com/content-hash"

func contentOf(obj client.Object) []string {
	if content := obj.(*proxyv1alpha1.Nginx).Spec.ContentRef; content != nil {
		return []string{content.Name}
	}
	return nil
}

func controllerOf(obj client.Object) []string {
	if controller := metav1.GetControllerOfNoCopy(obj); controller != nil {
		return []string{string(controller.UID)}
	}
	return nil
}

// replicaSet is what stands for a ReplicaSet here: its metadata. The API server sends no more of it.
func replicaSet() *metav1.PartialObjectMetadata {
	meta := &metav1.PartialObjectMetadata{}
	meta.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))
	return meta
}

// A podCache holds pods and ReplicaSets. It is apart from the manager's, for a label selects what the API
// server sends: a cluster has many pods, each changes often, and few are ours.
type podCache struct{ cache.Cache }

// NeedLeaderElection lets the cache be filled while another replica leads.
func (podCache) NeedLeaderElection() bool { return false }

// newPodCache returns a cache that the manager runs, and on which its readiness waits. The pods of an Nginx
// always have the labels that it selects by, or their ReplicaSet lets go of them; likewise a ReplicaSet
// and its Deployment. Other labels, such as managed-by, anybody can take from an own pod.
func newPodCache(mgr ctrl.Manager, namespaces []string) (podCache, error) {
	ours, err := apilabels.NewRequirement(labelName, selection.Equals, []string{"nginx"})
	if err != nil {
		return podCache{}, err
	}
	named, err := apilabels.NewRequirement(labelInstance, selection.Exists, nil)
	if err != nil {
		return podCache{}, err
	}
	options := program.CacheOptions(namespaces, Trim)
	options.Scheme, options.Mapper, options.HTTPClient = mgr.GetScheme(), mgr.GetRESTMapper(), mgr.GetHTTPClient()
	options.DefaultLabelSelector = apilabels.NewSelector().Add(*ours, *named)
	pods, err := cache.New(mgr.GetConfig(), options)
	if err != nil {
		return podCache{}, fmt.Errorf("make the cache of pods: %w", err)
	}
	return podCache{pods}, errors.Join(
		pods.IndexField(context.Background(), &corev1.Pod{}, byController, controllerOf),
		pods.IndexField(context.Background(), replicaSet(), byController, controllerOf),
		mgr.Add(podCache{pods}),
		mgr.AddReadyzCheck("pods", func(r *http.Request) error {
			ctx, cancel := context.WithTimeout(r.Context(), 100*time.Millisecond)
			defer cancel()
			if !pods.WaitForCacheSync(ctx) {
				return errors.New("the cache of pods is not filled yet")
			}
			return nil
		}),
	)
}

// Trim is a cache.TransformFunc: what it returns is kept instead of what the API server sent. Of a pod only
// what says whose it is and whether it runs, of a ConfigMap the hash of its data, of a Deployment or a
// Service that no Nginx made only what names it. What was trimmed once stays as it is: the first list
// comes through here twice.
func Trim(obj any) (any, error) {
	o, ok := obj.(client.Object)
	if !ok {
		return obj, nil
	}
	name := metav1.ObjectMeta{Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(),
		ResourceVersion: o.GetResourceVersion(), OwnerReferences: o.GetOwnerReferences(), DeletionTimestamp: o.GetDeletionTimestamp()}
	switch obj := obj.(type) {
	case *corev1.ConfigMap:
		hash, err := hashOf(obj)
		return &corev1.ConfigMap{ObjectMeta: name, Data: map[string]string{contentHash: hash}}, err
	case *corev1.Pod:
		name.Labels = map[string]string{labelInstance: o.GetLabels()[labelInstance]}
		return &corev1.Pod{ObjectMeta: name, Status: corev1.PodStatus{Phase: obj.Status.Phase}}, nil
	case *metav1.PartialObjectMetadata:
		name.Labels = map[string]string{labelInstance: o.GetLabels()[labelInstance]}
		return &metav1.PartialObjectMetadata{TypeMeta: obj.TypeMeta, ObjectMeta: name}, nil
	}
	return owned.Trim(Kind, o), nil
}

// hashOf is the hash of what a ConfigMap holds.
func hashOf(content *corev1.ConfigMap) (string, error) {
	if hash := content.Data[contentHash]; hash != "" {
		return hash, nil
	}
	data, err := json.Marshal(map[string]any{"data": content.Data, "binaryData": content.BinaryData})
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8]), err
}

// moved reports whether an update of a pod or a ReplicaSet matters. Most do not: of what they change, the
// cache keeps nothing.
func moved(e event.UpdateEvent) bool {
	old, now := e.ObjectOld, e.ObjectNew
	return phaseOf(old) != phaseOf(now) || old.GetUID() != now.GetUID() ||
		old.GetDeletionTimestamp().IsZero() != now.GetDeletionTimestamp().IsZero() ||
		old.GetLabels()[labelInstance] != now.GetLabels()[labelInstance] ||
		!slices.Equal(controllerOf(old), controllerOf(now))
}

func phaseOf(obj client.Object) corev1.PodPhase {
	if pod, ok := obj.(*corev1.Pod); ok {
		return pod.Status.Phase
	}
	return ""
}
