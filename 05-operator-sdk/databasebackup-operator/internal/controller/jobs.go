package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	databasesv1 "github.com/example/databasebackup-operator/api/v1"
)

// A conditionError says why a Job cannot be created. A condition reports it.
type conditionError struct{ explanation }

func (e conditionError) Error() string { return e.message }

// errNamespaceTerminating means that nothing can be created any more: the namespace is being deleted, with all its
// objects.
var errNamespaceTerminating = errors.New("the namespace is being deleted")

// errStale means that the decision is based on an old version of the object, so the operator does nothing.
var errStale = errors.New("the cache is stale")

// checkCurrent returns errStale when an object changed since it was read. The cache may be stale after a restart, and
// so may the cache of a replica that lost its lease and does not know it yet. Such a replica could delete a running Job
// as surplus, or create a Job that has already ended.
func (r *Base) checkCurrent(ctx context.Context, obj client.Object) error {
	live, key := obj.DeepCopyObject().(client.Object), client.ObjectKeyFromObject(obj)
	err := r.Live.Get(ctx, key, live)
	if apierrors.IsNotFound(err) || err == nil && live.GetResourceVersion() != obj.GetResourceVersion() {
		return errStale
	}
	if err != nil {
		return fmt.Errorf("get %T %s: %w", obj, key, err)
	}
	return nil
}

// createJob creates a Job. An existing Job of the same owner is a success: the response to an earlier try was lost, or
// the process ended. It returns a conditionError when a Job that the owner does not control has the name, or when the
// API server refuses the Job. It returns errNamespaceTerminating when the namespace is being deleted. It returns
// another error, to try again, when the Job belongs to a deleted owner of the same name: the garbage collector will
// delete it.
func (r *Base) createJob(ctx context.Context, job *batchv1.Job) error {
	err := r.Create(ctx, job, fieldOwner)
	switch {
	case err == nil:
		return nil
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return errNamespaceTerminating
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err):
		return conditionError{explain(databasesv1.ReasonJobRejected, "Job %s is refused: %v", job.Name, err)}
	case !apierrors.IsAlreadyExists(err):
		return fmt.Errorf("create Job %s/%s: %w", job.Namespace, job.Name, err)
	}
	live, err := r.getJob(ctx, job.Namespace, job.Name)
	if err != nil || live == nil {
		return errors.Join(err, fmt.Errorf("create Job %s/%s: it existed a moment ago", job.Namespace, job.Name))
	}
	was, is := metav1.GetControllerOf(live), job.OwnerReferences[0]
	switch {
	case was != nil && was.UID == is.UID:
		return nil
	case was != nil && was.APIVersion == is.APIVersion && was.Kind == is.Kind && was.Name == is.Name:
		return fmt.Errorf("create Job %s/%s: the one of an earlier %s %s is still there", job.Namespace, job.Name, is.Kind,
			is.Name)
	default:
		return conditionError{explanation{databasesv1.ReasonJobNameTaken,
			fmt.Sprintf("Job %s exists, and is not controlled by %s %s: delete it", job.Name, is.Kind, is.Name)}}
	}
}

// deleteJob deletes a Job and its pods, but not a new Job of the same name.
func (r *Base) deleteJob(ctx context.Context, job *batchv1.Job) error {
	err := r.Delete(ctx, job, client.PropagationPolicy(metav1.DeletePropagationBackground),
		client.Preconditions{UID: &job.UID})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete Job %s/%s: %w", job.Namespace, job.Name, err)
	}
	return nil
}

// find reads an object, nil when it does not exist.
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

// getJob reads a Job from the API server itself, nil when it does not exist.
func (r *Base) getJob(ctx context.Context, namespace, name string) (*batchv1.Job, error) {
	return find(ctx, r.Live, namespace, name, &batchv1.Job{})
}

// asCached makes a List read the cache as it is. Otherwise List waits until the cache has all writes of that kind, also
// writes that are still in progress: one slow create of a Job would stop all DatabaseBackups. A Job that is not in the
// cache yet is read by its name.
const asCached = client.DisableReadYourWritesConsistency

// listJobs reads the Jobs with these labels that an owner controls.
func (r *Base) listJobs(
	ctx context.Context, from client.Reader, owner client.Object, l map[string]string,
) ([]batchv1.Job, error) {
	list := &batchv1.JobList{}
	if err := from.List(ctx, list, client.InNamespace(owner.GetNamespace()), client.MatchingLabels(l),
		asCached); err != nil {
		return nil, fmt.Errorf("list the Jobs of %s: %w", client.ObjectKeyFromObject(owner), err)
	}
	return slices.DeleteFunc(list.Items, func(job batchv1.Job) bool { return !metav1.IsControlledBy(&job, owner) }), nil
}

// observeJobs reads the Jobs of an object, and the pods of its active Job. It reads the active Job from the API server
// itself when the cache does not have it.
func (r *Base) observeJobs(
	ctx context.Context, owner client.Object, component, active string, o *observed,
) (err error) {
	if o.jobs, err = r.listJobs(ctx, r.Client, owner, labels(owner.GetName(), component)); err != nil {
		return err
	}
	if active != "" && o.job(active) == nil {
		job, err := r.getJob(ctx, owner.GetNamespace(), active)
		if err != nil {
			return err
		}
		if o.vanished = job == nil || !metav1.IsControlledBy(job, owner); !o.vanished {
			o.jobs = append(o.jobs, *job)
		}
	}
	return r.observePods(ctx, o.job(active), o)
}

// listPods reads the pods of a Job.
func (r *Base) listPods(ctx context.Context, job *batchv1.Job) ([]corev1.Pod, error) {
	list := &corev1.PodList{}
	if err := r.List(ctx, list, client.InNamespace(job.Namespace), client.MatchingLabels{batchv1.JobNameLabel: job.Name},
		asCached); err != nil {
		return nil, fmt.Errorf("list the pods of Job %s/%s: %w", job.Namespace, job.Name, err)
	}
	return slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool { return !metav1.IsControlledBy(&pod, job) }), nil
}
