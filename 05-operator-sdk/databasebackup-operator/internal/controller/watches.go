package controller

import (
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	databasesv1 "github.com/example/databasebackup-operator/api/v1"
	"github.com/example/databasebackup-operator/internal/program"
)

// mapToDatabaseBackups returns the DatabaseBackups of a namespace whose targetRef names a StatefulSet or Service.
func (r *DatabaseBackupReconciler) mapToDatabaseBackups(
	ctx context.Context, obj client.Object,
) (requests []reconcile.Request) {
	list := &databasesv1.DatabaseBackupList{}
	if err := r.List(ctx, list, client.InNamespace(obj.GetNamespace()), asCached,
		client.UnsafeDisableDeepCopy); err != nil { // only names are read
		return nil // the cache has stopped
	}
	for i := range list.Items {
		ref := list.Items[i].Spec.TargetRef
		if ref != nil && (ref.Name == obj.GetName() || serviceOf(ref) == obj.GetName()) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return requests
}

// mapToWaitingRestores returns the DatabaseRestores of a namespace that have not ended and have no Job yet: they wait
// for their DatabaseBackup or for a target.
func (r *DatabaseRestoreReconciler) mapToWaitingRestores(
	ctx context.Context, obj client.Object,
) (requests []reconcile.Request) {
	list := &databasesv1.DatabaseRestoreList{}
	if err := r.List(ctx, list, client.InNamespace(obj.GetNamespace()), asCached,
		client.UnsafeDisableDeepCopy); err != nil {
		return nil // the cache has stopped
	}
	for i := range list.Items {
		if restore := &list.Items[i]; !ended(restore) && !restore.Status.InProgress {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(restore)})
		}
	}
	return requests
}

// mapPodToOwner returns the object for which a pod runs, by the pod's labels.
func mapPodToOwner(components ...string) handler.MapFunc {
	return func(_ context.Context, pod client.Object) []reconcile.Request {
		if l := pod.GetLabels(); l[labelManager] == manager && slices.Contains(components, l[labelComponent]) {
			return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: pod.GetNamespace(), Name: l[labelInstance]}}}
		}
		return nil
	}
}

// Trim cuts what the cache keeps of objects that the operator does not own: of pods and Jobs only their identity; of
// StatefulSets and Services also the fields that the operator reads of a target.
func Trim(obj any) (any, error) {
	switch o := obj.(type) {
	case *corev1.Pod:
		if o.Labels[labelManager] == manager {
			return &corev1.Pod{ObjectMeta: o.ObjectMeta, Status: o.Status}, nil
		}
		return &corev1.Pod{ObjectMeta: program.NameOf(o)}, nil
	case *batchv1.Job:
		if o.Labels[labelManager] != manager {
			return &batchv1.Job{ObjectMeta: program.NameOf(o)}, nil
		}
	case *appsv1.StatefulSet:
		return &appsv1.StatefulSet{ObjectMeta: program.NameOf(o), Status: o.Status}, nil
	case *corev1.Service:
		return &corev1.Service{ObjectMeta: program.NameOf(o), Spec: corev1.ServiceSpec{Type: o.Spec.Type}}, nil
	}
	return obj, nil
}
