package controller

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	databasesv1 "github.com/example/databasebackup-operator/api/v1"
)

// podGrace is how long the Job controller has to create a Job's first pod before the operator asks why there is none.
const podGrace = 10 * time.Second

// observePods reads the pods of a Job, or the reason why the Job has no pod. There may be no Job.
func (r *Base) observePods(ctx context.Context, job *batchv1.Job, o *observed) (err error) {
	if job == nil {
		return nil
	}
	if o.pods, err = r.listPods(ctx, job); err != nil || len(o.pods) > 0 {
		return err
	}
	if finished(job) != nil || job.Status.StartTime == nil || !job.DeletionTimestamp.IsZero() {
		return nil
	}
	if o.checkPodsAt = job.Status.StartTime.Add(podGrace); o.now.Before(o.checkPodsAt) {
		return nil
	}
	o.checkPodsAt = o.now.Add(retryRefused)
	o.refused, err = r.podRefusal(ctx, job)
	return err
}

// podRefusal explains why the Job controller cannot create a pod of a Job, for example because of a quota or a policy; it
// is nil when nothing is known. The status of a Job does not report that, an event of the Job does. A watch of events is
// expensive, because there are so many, so those of one Job are listed, and only while its pod is overdue. The Job
// controller tries again by itself, at most a minute later (MaxJobApiBackOff).
func (r *Base) podRefusal(ctx context.Context, job *batchv1.Job) (*explanation, error) {
	list := &corev1.EventList{}
	if err := r.Live.List(ctx, list, client.InNamespace(job.Namespace), client.MatchingFields{
		"involvedObject.uid": string(job.UID), "reason": "FailedCreate"}); err != nil {
		return nil, fmt.Errorf("list the events of Job %s/%s: %w", job.Namespace, job.Name, err)
	}
	if len(list.Items) == 0 {
		return nil, nil
	}
	last := slices.MaxFunc(list.Items, func(a, b corev1.Event) int { return a.LastTimestamp.Compare(b.LastTimestamp.Time) })
	return new(explain(databasesv1.ReasonPodRejected, "Pod of Job %s is refused: %s", job.Name, last.Message)), nil
}

// imageErrors are the kubelet's reasons for an image that cannot be pulled.
var imageErrors = []string{"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull",
	"ImageInspectError", "RegistryUnavailable"}

// blockedPod explains why the pods of a Job do not start, nil when nothing blocks them.
func blockedPod(pods []corev1.Pod) *explanation {
	for _, pod := range pods {
		if pod.Status.Phase != corev1.PodPending || pod.DeletionTimestamp != nil {
			continue
		}
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
				return new(explain(databasesv1.ReasonUnschedulable, "Pod %s finds no node: %s", pod.Name, c.Message))
			}
		}
		for _, s := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
			wait := s.State.Waiting
			switch {
			case wait == nil:
			case slices.Contains(imageErrors, wait.Reason):
				return new(explain(databasesv1.ReasonImageUnavailable,
					"Pod %s does not get image %s: %s", pod.Name, s.Image, cmp.Or(wait.Message, wait.Reason)))
			case wait.Reason == "CreateContainerConfigError":
				return new(explain(databasesv1.ReasonSecretNotFound,
					"Pod %s does not get its credentials: %s", pod.Name, wait.Message))
			}
		}
	}
	return nil
}

// blocked are the reasons of podRefusal and blockedPod. Their messages name the Job or its pod.
var blocked = map[string]bool{databasesv1.ReasonPodRejected: true, databasesv1.ReasonUnschedulable: true,
	databasesv1.ReasonImageUnavailable: true, databasesv1.ReasonSecretNotFound: true}

// podBlocker explains why the pods of a Job do not run, nil when nothing blocks them. When a Job exceeds its deadline,
// its pods are deleted before its end is reported. Once the pods are deleted, the explanation comes from the condition,
// if the condition names one of the pods.
func podBlocker(job string, o observed, before metav1.Condition) *explanation {
	if o.refused != nil {
		return o.refused
	}
	if b := blockedPod(o.pods); b != nil {
		return b
	}
	alive := func(pod corev1.Pod) bool { return pod.DeletionTimestamp == nil }
	if blocked[before.Reason] && strings.Contains(before.Message, job) && !slices.ContainsFunc(o.pods, alive) {
		return &explanation{before.Reason, before.Message}
	}
	return nil
}

// because adds the cause to the end of a Job: why its pods did not run.
func (o *outcome) because(blocker *explanation) {
	if o.reason == databasesv1.ReasonDeadlineExceeded && blocker != nil {
		o.message += ": " + blocker.message
	}
}
