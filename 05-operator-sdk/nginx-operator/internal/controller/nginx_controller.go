// Package controller turns Nginxes into Deployments and Services, and reports which of their pods run.
//
// This file has the permissions, Reconcile and the watches. desired.go computes the desired children, pods.go finds
// the pods of an Nginx, status.go computes the status, and pace.go limits how often it is written. mapping.go maps an
// event to Nginxes, cache.go trims the objects in the caches. The operator runs this core alone, without the hardening of
// chapter 04.
package controller

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	proxyv1alpha1 "github.com/example/nginx-operator/api/v1alpha1"
	"github.com/example/nginx-operator/internal/owned"
)

// The permissions of the operator: exactly the verbs that it uses, and delete. controller-gen turns them into
// config/rbac/role.yaml.
// The operator never sends delete. But an object with an owner reference is deleted with its owner, so the admission
// plugin OwnerReferencesPermissionEnforcement, which OpenShift enables, asks for delete of a user who sets the
// reference on an existing object: when a child has lost it, or is handed over.
//
// +kubebuilder:rbac:groups=proxy.example.com,resources=nginxes,verbs=list;watch
// +kubebuilder:rbac:groups=proxy.example.com,resources=nginxes/status,verbs=update
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=list;watch;create;patch;delete
// +kubebuilder:rbac:groups=apps,resources=replicasets,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=services,verbs=list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=configmaps;pods,verbs=list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create

// Kind is the kind that this controller reconciles.
var Kind = proxyv1alpha1.GroupVersion.WithKind("Nginx")

// Owner identifies the owner of a child.
var Owner = owned.Kind{GroupVersionKind: Kind}

// NginxReconciler keeps the children and the status of all Nginxes in their desired state.
type NginxReconciler struct {
	// Client reads from a cache, and writes to the API server.
	client.Client
	// Applier writes the children.
	Applier owned.Applier
	// Pods reads pods and ReplicaSets, which have a separate cache.
	Pods client.Reader
	// Events records the transitions of conditions.
	Events events.EventRecorder
	// Now returns the time of conditions, and Pace limits the writes of a status.
	Now  func() time.Time
	Pace StatusPace
	// Image is for an Nginx without an image.
	Image string
}

// Reconcile brings the children of one Nginx to their desired state, and reports the observed state in its status. It
// reads from the caches, writes only differences, and does not know which event caused the call. reconcile.AsReconciler reads
// the Nginx, and does not call Reconcile when the Nginx is gone.
func (r *NginxReconciler) Reconcile(ctx context.Context, nginx *proxyv1alpha1.Nginx) (ctrl.Result, error) {
	if !nginx.DeletionTimestamp.IsZero() { // the garbage collector removes the children
		return ctrl.Result{}, nil
	}
	hash, problem := r.contentHash(ctx, nginx)
	deployment, service := desired(nginx, r.Image, hash)
	problem = owned.Join(Owner.Observe(ctx, r, nginx, deployment, service), problem)
	if problem == nil { // without its content running pods are not changed, and the status still reports them
		problem = Owner.Apply(ctx, r.Applier, deployment, service)
	}
	blocked := owned.AsCondition(problem)
	if problem != nil && blocked == nil {
		return ctrl.Result{}, problem // no condition reports it: the caller tries again with backoff
	}
	live := deployment.Live.(*appsv1.Deployment)
	nodes, err := r.nodes(ctx, live)
	if err != nil {
		return ctrl.Result{}, err
	}
	return r.updateStatus(ctx, nginx, live, nodes, blocked)
}

// contentHash returns the hash of the content that an Nginx serves, empty when it serves the content of the image.
func (r *NginxReconciler) contentHash(ctx context.Context, nginx *proxyv1alpha1.Nginx) (string, error) {
	if nginx.Spec.ContentRef == nil {
		return "", nil
	}
	key, content := client.ObjectKey{Namespace: nginx.Namespace, Name: nginx.Spec.ContentRef.Name}, &corev1.ConfigMap{}
	err := r.Get(ctx, key, content)
	if apierrors.IsNotFound(err) {
		return "", owned.Errorf(proxyv1alpha1.ReasonContentNotFound,
			"ConfigMap %s of spec.contentRef does not exist: create it; until then nothing is changed", key.Name)
	}
	if err != nil {
		return "", fmt.Errorf("get ConfigMap %s: %w", key, err)
	}
	return content.Data[contentHash], nil // the cache keeps nothing else
}

// SetupWithManager adds a reconciler of Nginxes to a manager whose cache has Trim.
func SetupWithManager(mgr ctrl.Manager, pods PodCache, nginxes reconcile.Reconciler, options controller.Options) error {
	err := mgr.GetFieldIndexer().IndexField(context.Background(), &proxyv1alpha1.Nginx{}, contentField, indexContent)
	if err != nil {
		return err
	}
	return watches(mgr, pods).WithOptions(options).Complete(nginxes)
}

// watches registers the events that enqueue an Nginx.
//
// For: any change of an Nginx. The operator's own status writes enqueue it too, which costs a read from the cache. So
// does a status that another client wrote, which is corrected. An event filter for the whole controller would hide the
// status of Deployments, and no Nginx would ever be available.
//
// Owns finds the owner by the owner reference of a child. An unmanaged object with the name of a child has no such
// reference, so the operator maps it by its name. Both share one watch for each kind.
func watches(mgr ctrl.Manager, pods PodCache) *builder.Builder {
	byName := handler.EnqueueRequestsFromMapFunc(owned.MapByName(mgr.GetCache(), &proxyv1alpha1.Nginx{}))
	byLabel := handler.EnqueueRequestsFromMapFunc(mapByLabel(mgr.GetCache()))
	changed := predicate.Funcs{UpdateFunc: podChanged}
	return ctrl.NewControllerManagedBy(mgr).
		Named("nginx").
		For(&proxyv1alpha1.Nginx{}).
		Owns(&appsv1.Deployment{}).
		Owns(&corev1.Service{}).
		Watches(&appsv1.Deployment{}, byName).
		Watches(&corev1.Service{}, byName).
		Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(mapByContent(mgr.GetCache()))).
		WatchesRawSource(source.Kind[client.Object](pods, replicaSet(), byLabel, changed)).
		WatchesRawSource(source.Kind[client.Object](pods, &corev1.Pod{}, byLabel, changed))
}
