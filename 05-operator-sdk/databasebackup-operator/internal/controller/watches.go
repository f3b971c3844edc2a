package controller

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	databasesv1 "github.com/example/databasebackup-operator/api/v1"
)

// Indexes of DatabaseBackups by what they name.
const (
	bySet     = "spec.targetRef.name"
	byService = "spec.targetRef.serviceName"
)

// targets is an index by a name in targetRef.
func targets(name func(*databasesv1.TargetReference) string) client.IndexerFunc {
	return func(obj client.Object) []string {
		if ref := obj.(*databasesv1.DatabaseBackup).Spec.TargetRef; ref != nil {
			return []string{name(ref)}
		}
		return nil
	}
}

// whoTargets finds the DatabaseBackups that name an object in their targetRef.
func (r *DatabaseBackupReconciler) whoTargets(index string) handler.MapFunc {
	return func(ctx context.Context, obj client.Object) (requests []reconcile.Request) {
		list := &databasesv1.DatabaseBackupList{}
		if err := r.List(ctx, list, client.InNamespace(obj.GetNamespace()), client.MatchingFields{index: obj.GetName()}); err != nil {
			return nil // the cache has stopped
		}
		for i := range list.Items {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
		return requests
	}
}

// ownerOfPod finds whom a pod of a Job concerns, by its labels.
func ownerOfPod(components ...string) handler.MapFunc {
	return func(_ context.Context, pod client.Object) []reconcile.Request {
		if l := pod.GetLabels(); l[labelManager] == manager && slices.Contains(components, l[labelComponent]) {
			return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: pod.GetNamespace(), Name: l[labelInstance]}}}
		}
		return nil
	}
}

// triggered lets a new value of the trigger through.
var triggered = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return true },
	UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetAnnotations()[databasesv1.TriggerAnnotation] != e.ObjectNew.GetAnnotations()[databasesv1.TriggerAnnotation]
	},
	DeleteFunc: func(event.DeleteEvent) bool { return true },
}

// Trim cuts what the cache keeps of others' objects: of pods and Jobs that are not the operator's, only that they
// are there; of StatefulSets and Services, what is asked of a target.
func Trim(obj any) (any, error) {
	switch o := obj.(type) {
	case *corev1.Pod:
		if o.Labels[labelManager] == manager {
			return &corev1.Pod{ObjectMeta: o.ObjectMeta, Status: o.Status}, nil
		}
		return &corev1.Pod{ObjectMeta: identity(o.ObjectMeta)}, nil
	case *batchv1.Job:
		if o.Labels[labelManager] != manager {
			return &batchv1.Job{ObjectMeta: identity(o.ObjectMeta)}, nil
		}
	case *appsv1.StatefulSet:
		return &appsv1.StatefulSet{ObjectMeta: identity(o.ObjectMeta), Status: o.Status}, nil
	case *corev1.Service:
		return &corev1.Service{ObjectMeta: identity(o.ObjectMeta)}, nil
	}
	return obj, nil
}

func identity(m metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion, Generation: m.Generation}
}

// find reads an object, nil when there is none.
func find[T client.Object](ctx context.Context, c client.Reader, namespace, name string, obj T) (found T, err error) {
	err = c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, obj)
	if apierrors.IsNotFound(err) {
		return found, nil
	}
	if err != nil {
		return found, fmt.Errorf("get %T %s/%s: %w", obj, namespace, name, err)
	}
	return obj, nil
}

// job reads a Job from the API server itself, nil when there is none.
func (w *Writer) job(ctx context.Context, namespace, name string) (*batchv1.Job, error) {
	return find(ctx, w.Live, namespace, name, &batchv1.Job{})
}

// jobs reads the Jobs with these labels that an owner controls.
func (w *Writer) jobs(ctx context.Context, owner client.Object, l map[string]string) ([]batchv1.Job, error) {
	list := &batchv1.JobList{}
	if err := w.List(ctx, list, client.InNamespace(owner.GetNamespace()), client.MatchingLabels(l)); err != nil {
		return nil, fmt.Errorf("list the Jobs of %s: %w", client.ObjectKeyFromObject(owner), err)
	}
	return slices.DeleteFunc(list.Items, func(job batchv1.Job) bool { return !metav1.IsControlledBy(&job, owner) }), nil
}

// pods reads the pods of a Job.
func (w *Writer) pods(ctx context.Context, job *batchv1.Job) ([]corev1.Pod, error) {
	list := &corev1.PodList{}
	if err := w.List(ctx, list, client.InNamespace(job.Namespace), client.MatchingLabels{batchv1.JobNameLabel: job.Name}); err != nil {
		return nil, fmt.Errorf("list the pods of Job %s/%s: %w", job.Namespace, job.Name, err)
	}
	return slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool { return !metav1.IsControlledBy(&pod, job) }), nil
}
