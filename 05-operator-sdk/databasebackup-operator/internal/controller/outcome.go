package controller

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	databasesv1 "github.com/example/databasebackup-operator/api/v1"
)

// escape keeps Kubernetes from replacing $(NAME) in the value of an environment variable.
func escape(value string) string { return strings.ReplaceAll(value, "$", "$$") }

// slotOf is the minute in the name of a Job, zero when it has none.
func slotOf(backup, job string) time.Time {
	minute, err := strconv.ParseInt(strings.TrimPrefix(job, backup+"-"), 10, 64)
	if err != nil || minute <= 0 {
		return time.Time{}
	}
	return time.Unix(minute*60, 0).UTC()
}

// finished returns the condition with which a Job ended, nil while it works. A Job that is about to end
// (SuccessCriteriaMet, FailureTarget) still has pods.
func finished(job *batchv1.Job) *batchv1.JobCondition {
	for i, c := range job.Status.Conditions {
		if c.Status == corev1.ConditionTrue && (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) {
			return &job.Status.Conditions[i]
		}
	}
	return nil
}

// An obstacle is why something does not go on: a CamelCase word and a sentence.
type obstacle struct{ reason, message string }

// An outcome is how a Job ended. It has succeeded when the Job did and left a result: without one nobody knows what
// it did, and the reason is ResultMissing.
type outcome struct {
	obstacle
	succeeded bool
	at        time.Time
	seconds   float64
	result    *result // nil when it could not be read
}

// patience is how long the outcome of a finished Job may come after the Job: pods and Jobs are watched apart.
const patience = 30 * time.Second

// outcomeOf tells how a Job ended, by the Job and its pods. ok is false while it works, or its pods are not seen yet.
func outcomeOf(job *batchv1.Job, pods []corev1.Pod, now time.Time) (o outcome, ok bool) {
	end := finished(job)
	if end == nil {
		return o, false
	}
	o.at = end.LastTransitionTime.Time
	if job.Status.CompletionTime != nil {
		o.at = job.Status.CompletionTime.Time
	}
	if job.Status.StartTime != nil {
		o.seconds = o.at.Sub(job.Status.StartTime.Time).Seconds()
	}
	last := lastRun(pods)
	if last != nil {
		o.result = parseResult(last.Message)
	}
	complete := end.Type == batchv1.JobComplete
	if complete && o.result != nil && !o.result.Succeeded {
		o.result = nil // of a try before the one that succeeded
	}
	o.succeeded = complete && o.result != nil
	switch {
	case !complete && end.Reason == batchv1.JobReasonDeadlineExceeded:
		o.obstacle = obstacle{databasesv1.ReasonDeadlineExceeded, fmt.Sprintf("Job %s took longer than %d s", job.Name, value(job.Spec.ActiveDeadlineSeconds, 0))}
		if o.result != nil && !o.result.Succeeded {
			o.message += fmt.Sprintf("; the last try: %s: %s", o.result.Reason, o.result.Message)
		}
		o.message, o.result = told(o.message, nil, pods), nil
	case o.result != nil:
		o.obstacle = obstacle{o.result.Reason, cmp.Or(o.result.Message, "Job "+job.Name)}
		if o.result.Warning != "" {
			o.message += "; " + o.result.Warning
		}
	case complete && last != nil && last.ExitCode == 0:
		o.obstacle = obstacle{databasesv1.ReasonResultMissing, fmt.Sprintf("Job %s succeeded, but its container left no result: does the image have pgbackup?", job.Name)}
	case now.Sub(o.at) < patience && (last == nil || complete):
		return o, false
	case complete:
		o.obstacle = obstacle{databasesv1.ReasonResultMissing, fmt.Sprintf("Job %s succeeded, but its pod is gone, and with it what it did", job.Name)}
	case last != nil && last.Reason == "OOMKilled":
		o.obstacle = obstacle{databasesv1.ReasonOutOfMemory, fmt.Sprintf("Job %s: the container was killed for its memory: raise spec.resources.limits.memory", job.Name)}
	default:
		o.obstacle = obstacle{databasesv1.ReasonJobFailed, told(fmt.Sprintf("Job %s: %s", job.Name, cmp.Or(end.Message, end.Reason)), last, pods)}
	}
	return o, true
}

// told adds to a sentence what Kubernetes says of a container that left no result, and of a pod that was evicted.
func told(text string, last *corev1.ContainerStateTerminated, pods []corev1.Pod) string {
	if last != nil {
		text += fmt.Sprintf("; the last container ended with code %d", last.ExitCode)
		if last.Reason != "Error" {
			text += ", " + last.Reason
		}
		if last.Message != "" {
			text += ": " + last.Message
		}
	}
	for _, pod := range pods {
		if s := pod.Status; s.Phase == corev1.PodFailed && s.Reason != "" {
			return text + fmt.Sprintf("; pod %s was ended: %s: %s", pod.Name, s.Reason, s.Message)
		}
	}
	return text
}

// lastRun is the end of the container that ended last.
func lastRun(pods []corev1.Pod) (last *corev1.ContainerStateTerminated) {
	for _, pod := range pods {
		for _, s := range pod.Status.ContainerStatuses {
			if end := s.State.Terminated; end != nil && s.Name == containerName && (last == nil || last.FinishedAt.Time.Before(end.FinishedAt.Time)) {
				last = end
			}
		}
	}
	return last
}

// noImage are the words of the kubelet for an image that does not come.
var noImage = []string{"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError", "RegistryUnavailable"}

// stuck tells what keeps the pods of a working Job from working, nil when nothing does.
func stuck(pods []corev1.Pod) *obstacle {
	for _, pod := range pods {
		if pod.Status.Phase != corev1.PodPending || pod.DeletionTimestamp != nil {
			continue
		}
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
				return &obstacle{databasesv1.ReasonUnschedulable, fmt.Sprintf("Pod %s finds no node: %s", pod.Name, c.Message)}
			}
		}
		for _, s := range pod.Status.ContainerStatuses {
			wait := s.State.Waiting
			switch {
			case wait == nil:
			case slices.Contains(noImage, wait.Reason):
				return &obstacle{databasesv1.ReasonImageUnavailable, fmt.Sprintf("Pod %s does not get image %s: %s", pod.Name, s.Image, cmp.Or(wait.Message, wait.Reason))}
			case wait.Reason == "CreateContainerConfigError":
				return &obstacle{databasesv1.ReasonSecretNotFound, fmt.Sprintf("Pod %s does not get its credentials: %s", pod.Name, wait.Message)}
			}
		}
	}
	return nil
}

// blocked are the reasons that stuck gives.
var blocked = map[string]bool{databasesv1.ReasonUnschedulable: true, databasesv1.ReasonImageUnavailable: true, databasesv1.ReasonSecretNotFound: true}

// hindrance is what keeps the pods of a Job from working, nil when nothing does. When a Job exceeds its deadline its
// pods go first, and then its end is told: once no pod can tell, it is what the condition told of them before, by
// the name of one of them.
func hindrance(job string, pods []corev1.Pod, before metav1.Condition) *obstacle {
	if s := stuck(pods); s != nil {
		return s
	}
	alive := func(pod corev1.Pod) bool { return pod.DeletionTimestamp == nil }
	if blocked[before.Reason] && strings.HasPrefix(before.Message, "Pod "+job+"-") && !slices.ContainsFunc(pods, alive) {
		return &obstacle{before.Reason, before.Message}
	}
	return nil
}

// because adds to the end of a Job what kept its pods from working.
func (o *outcome) because(h *obstacle) {
	if o.reason == databasesv1.ReasonDeadlineExceeded && h != nil {
		o.message += ": " + h.message
	}
}
