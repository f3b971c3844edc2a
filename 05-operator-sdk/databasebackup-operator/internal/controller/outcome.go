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
	"k8s.io/utils/ptr"

	databasesv1 "github.com/example/databasebackup-operator/api/v1"
)

// slotOf is the minute in the name of a Job, zero when the name has none.
func slotOf(backup, job string) time.Time {
	minute, err := strconv.ParseInt(strings.TrimPrefix(job, backup+"-"), 10, 64)
	if err != nil || minute <= 0 {
		return time.Time{}
	}
	return time.Unix(minute*60, 0).UTC()
}

// finished returns the condition with which a Job ended, nil while it runs. A Job that is about to end
// (SuccessCriteriaMet, FailureTarget) still has pods.
func finished(job *batchv1.Job) *batchv1.JobCondition {
	for i, c := range job.Status.Conditions {
		if c.Status == corev1.ConditionTrue && (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) {
			return &job.Status.Conditions[i]
		}
	}
	return nil
}

// An explanation is the content of a condition or an event: a CamelCase reason, and a message for people.
type explanation struct{ reason, message string }

// explain is an explanation whose message is formatted.
func explain(reason, format string, args ...any) explanation {
	return explanation{reason, fmt.Sprintf(format, args...)}
}

// An outcome is how a Job ended. It is a success when the Job succeeded and left a result. Without a result it is not
// known what the Job did, and the reason is ResultMissing.
type outcome struct {
	explanation
	succeeded bool
	at        time.Time
	seconds   float64
	result    *result // nil when it could not be read
}

// resultGrace is how long after the end of a Job its result may arrive: pods and Jobs are watched separately.
const resultGrace = 30 * time.Second

// outcomeOf computes the outcome from a Job and its pods. ok is false while the Job runs, or its pods are not seen yet.
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
		o.result = nil // of a try before the successful try
	}
	o.succeeded = complete && o.result != nil
	switch {
	case !complete && end.Reason == batchv1.JobReasonDeadlineExceeded:
		o.explanation = explain(databasesv1.ReasonDeadlineExceeded,
			"Job %s took longer than %d s", job.Name, ptr.Deref(job.Spec.ActiveDeadlineSeconds, 0))
		if o.result != nil && !o.result.Succeeded {
			o.message += fmt.Sprintf("; the last try: %s: %s", o.result.Reason, o.result.Message)
		}
		o.message, o.result = withPodState(o.message, nil, pods), nil
	case o.result != nil:
		o.explanation = explanation{o.result.Reason, cmp.Or(o.result.Message, "Job "+job.Name)}
		if o.result.Warning != "" {
			o.message += "; " + o.result.Warning
		}
	case complete && last != nil && last.ExitCode == 0:
		o.explanation = explain(databasesv1.ReasonResultMissing,
			"Job %s succeeded, but its container left no result: does the image have pgbackup?", job.Name)
	case now.Sub(o.at) < resultGrace && (last == nil || complete):
		return o, false
	case complete:
		o.explanation = explain(databasesv1.ReasonResultMissing,
			"Job %s succeeded, but its pod is gone, and with it the result", job.Name)
	case last != nil && last.Reason == "OOMKilled":
		o.explanation = explain(databasesv1.ReasonOutOfMemory,
			"Job %s: the container ran out of memory: raise spec.resources.limits.memory", job.Name)
	default:
		o.explanation = explanation{databasesv1.ReasonJobFailed, withPodState(fmt.Sprintf("Job %s: %s", job.Name,
			cmp.Or(end.Message, end.Reason)), last, pods)}
	}
	return o, true
}

// notStarted are the reasons for which a container has an end although it never ran. Then the container runtime wrote
// the message. A container that ran wrote its message itself: no filter has seen the text, and it may contain a
// password.
var notStarted = []string{"StartError", "ContainerCannotRun"}

// withPodState adds to a message what Kubernetes reports of a container that left no result, and of a pod that was
// evicted.
func withPodState(text string, last *corev1.ContainerStateTerminated, pods []corev1.Pod) string {
	if last != nil {
		text += fmt.Sprintf("; the last container ended with code %d", last.ExitCode)
		if last.Reason != "Error" {
			text += ", " + last.Reason
		}
		if last.Message != "" && slices.Contains(notStarted, last.Reason) {
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
			if end := s.State.Terminated; end != nil && s.Name == containerName && (last == nil ||
				last.FinishedAt.Time.Before(end.FinishedAt.Time)) {
				last = end
			}
		}
	}
	return last
}
