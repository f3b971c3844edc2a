package controller

import (
	"context"
	"errors"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	databasesv1 "github.com/example/databasebackup-operator/api/v1"
)

// act makes the Job that status names, and removes those that shall go.
func (r *DatabaseBackupReconciler) act(ctx context.Context, b *databasesv1.DatabaseBackup, o observed) error {
	gone, begins := surplus(b, &b.Status, o), pending(&b.Status, o) && len(Missing(b, r.Image)) == 0
	if len(gone) == 0 && !begins {
		return nil
	}
	if err := r.current(ctx, b); err != nil {
		return err
	}
	for _, job := range gone {
		if err := r.discard(ctx, job); err != nil {
			return err
		}
		if finished(job) == nil {
			r.Events.Eventf(b, nil, corev1.EventTypeNormal, databasesv1.ReasonReplaced, "Backup", "Job %s was ended for the run after it", job.Name)
		}
	}
	if !begins {
		return nil
	}
	job := desiredBackup(b, b.Status.ActiveJob, r.Image)
	_, err := r.make(ctx, job)
	status, set := *b.Status.DeepCopy(), setter{&b.Status.Conditions, b.Generation, o.now}
	set.conditions = &status.Conditions
	what, told := errors.AsType[rejection](err)
	switch {
	case told && what.reason == databasesv1.ReasonJobNameTaken:
		end := &outcome{obstacle: what.obstacle, at: o.now}
		record(&status, end, set)
		return r.tell(ctx, b, status, end)
	case told:
		set.to(databasesv1.ConditionReady, metav1.ConditionFalse, what.obstacle)
		return errors.Join(r.tell(ctx, b, status, nil), err) // tried again, ever more slowly
	case errors.Is(err, errGoing):
		return nil
	}
	return err
}

// A rejection is why a Job cannot be made.
type rejection struct{ obstacle }

func (e rejection) Error() string { return e.message }

// errGoing is why nothing can be made any more: the namespace is being deleted, and all that is in it.
var errGoing = errors.New("the namespace is being deleted")

// errBehind is why nothing is done: the decision was made on a state that is past.
var errBehind = errors.New("the cache is behind")

// current returns errBehind when an object is not any more as it was read. The cache may be behind after a restart,
// and so may be the one of a replica that lost its lease and does not know yet: what it takes for surplus is at work,
// and what it is about to make has ended.
func (w *Writer) current(ctx context.Context, obj client.Object) error {
	live, key := obj.DeepCopyObject().(client.Object), client.ObjectKeyFromObject(obj)
	err := w.Live.Get(ctx, key, live)
	if apierrors.IsNotFound(err) || err == nil && live.GetResourceVersion() != obj.GetResourceVersion() {
		return errBehind
	}
	if err != nil {
		return fmt.Errorf("get %T %s: %w", obj, key, err)
	}
	return nil
}

// make makes a Job. That it is there already is a success when it is the same owner's: the answer to an earlier
// try was lost, or the program ended. It returns a rejection when the name is somebody else's, or the API server does
// not take the Job; errGoing when there is no place for it; and an error to try again when the Job is of an owner that
// had the same name and is gone: the garbage collector is about to take it.
func (w *Writer) make(ctx context.Context, job *batchv1.Job) (made bool, err error) {
	err = w.Create(ctx, job, fieldOwner)
	switch {
	case err == nil:
		return true, nil
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return false, errGoing
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err):
		return false, rejection{obstacle{databasesv1.ReasonJobRejected, fmt.Sprintf("Job %s is refused: %v", job.Name, err)}}
	case !apierrors.IsAlreadyExists(err):
		return false, fmt.Errorf("create Job %s/%s: %w", job.Namespace, job.Name, err)
	}
	live, err := w.job(ctx, job.Namespace, job.Name)
	if err != nil || live == nil {
		return false, errors.Join(err, fmt.Errorf("create Job %s/%s: it existed a moment ago", job.Namespace, job.Name))
	}
	was, is := metav1.GetControllerOf(live), job.OwnerReferences[0]
	switch {
	case was != nil && was.UID == is.UID:
		return false, nil
	case was != nil && was.APIVersion == is.APIVersion && was.Kind == is.Kind && was.Name == is.Name:
		return false, fmt.Errorf("create Job %s/%s: the one of an earlier %s %s is still there", job.Namespace, job.Name, is.Kind, is.Name)
	default:
		return false, rejection{obstacle{databasesv1.ReasonJobNameTaken, fmt.Sprintf("Job %s belongs to somebody else: delete it", job.Name)}}
	}
}

// discard deletes a Job and its pods, but not another one that has its name since.
func (w *Writer) discard(ctx context.Context, job *batchv1.Job) error {
	err := w.Delete(ctx, job, client.PropagationPolicy(metav1.DeletePropagationBackground), client.Preconditions{UID: &job.UID})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete Job %s/%s: %w", job.Namespace, job.Name, err)
	}
	return nil
}
