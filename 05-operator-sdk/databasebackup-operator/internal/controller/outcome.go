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

// An outcome is how a Job ended.
type outcome struct {
	explanation
	// succeeded: each container has passed, or verify is the only one that has not. A backup exists whether or
	// not it passes its verification.
	succeeded bool
	at        time.Time
	seconds   float64
	ends      map[string]containerEnd
	// notVerified is why verify has not passed, nil when it has, or when there is no backup.
	notVerified *explanation
}

// A containerEnd is how a container ended. Both fields are nil when that is not known; result is nil when pgbackup left
// none.
type containerEnd struct {
	state  *corev1.ContainerStateTerminated
	result *result
}

func (e containerEnd) passed() bool { return e.result != nil && e.result.Succeeded }

// resultGrace is how long after the end of a Job its results may arrive: pods and Jobs are watched separately.
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
	names := containersOf(job)
	o.ends = endsOf(names, pods)
	failed := slices.IndexFunc(names, func(name string) bool { return !o.ends[name].passed() })
	switch {
	case end.Reason == batchv1.JobReasonDeadlineExceeded:
		o.explanation = explainDeadline(job, pods, o.ends)
		return o, true
	case failed < 0:
		o.succeed(names)
		return o, true
	}
	name, at := names[failed], o.ends[names[failed]]
	complete := end.Type == batchv1.JobComplete
	noResult := at.state != nil && at.state.ExitCode == 0 && at.result == nil
	switch {
	case complete && noResult:
		o.explanation = explain(databasesv1.ReasonResultMissing,
			"Job %s succeeded, but its container %s left no result: does the image have pgbackup?", job.Name, name)
	case now.Sub(o.at) < resultGrace && (complete || at.state == nil):
		return o, false
	case complete:
		o.explanation = explain(databasesv1.ReasonResultMissing,
			"Job %s succeeded, but its pod is gone, and with it the result", job.Name)
	case name == verbVerify:
		o.succeed(names)
		o.notVerified = new(explainFailure(job, end, at, pods))
	default:
		o.explanation = explainFailure(job, end, at, pods)
		if name == verbFinish {
			o.message = "the backup was taken, but the run did not finish: " + o.message
		}
	}
	return o, true
}

// succeed notes a success, in the words of the first container, with the warnings of all.
func (o *outcome) succeed(names []string) {
	first := o.ends[names[0]].result
	o.succeeded, o.explanation = true, explanation{first.Reason, first.Message}
	for _, name := range names {
		if r := o.ends[name].result; r != nil && r.Warning != "" {
			o.message += "; " + r.Warning
		}
	}
}

// explainDeadline explains the end of a Job that took too long.
func explainDeadline(job *batchv1.Job, pods []corev1.Pod, ends map[string]containerEnd) explanation {
	e := explain(databasesv1.ReasonDeadlineExceeded,
		"Job %s took longer than %d s", job.Name, ptr.Deref(job.Spec.ActiveDeadlineSeconds, 0))
	for _, name := range containersOf(job) {
		if r := ends[name].result; r != nil && !r.Succeeded {
			e.message += fmt.Sprintf("; the last try: %s: %s", r.Reason, r.Message)
		}
	}
	e.message = withPodState(e.message, nil, pods)
	return e
}

// explainFailure explains the end of a Job by the container that did not pass.
func explainFailure(job *batchv1.Job, end *batchv1.JobCondition, at containerEnd, pods []corev1.Pod) explanation {
	switch {
	case at.result != nil:
		return explanation{at.result.Reason, cmp.Or(at.result.Message, "Job "+job.Name)}
	case at.state != nil && at.state.Reason == "OOMKilled":
		return explain(databasesv1.ReasonOutOfMemory,
			"Job %s: the container ran out of memory: raise spec.resources.limits.memory", job.Name)
	}
	return explanation{databasesv1.ReasonJobFailed, withPodState(fmt.Sprintf("Job %s: %s", job.Name,
		cmp.Or(end.Message, end.Reason)), at.state, pods)}
}

// notStarted are the reasons for which a container has an end although it never ran. Then the container runtime wrote
// the message. A container that ran wrote its message itself, and it may contain a password.
var notStarted = []string{"StartError", "ContainerCannotRun"}

// withPodState adds to a message what Kubernetes reports of a container that left no result, and of a pod that was
// evicted.
func withPodState(text string, state *corev1.ContainerStateTerminated, pods []corev1.Pod) string {
	if state != nil {
		text += fmt.Sprintf("; the last container ended with code %d", state.ExitCode)
		if state.Reason != "Error" {
			text += ", " + state.Reason
		}
		if state.Message != "" && slices.Contains(notStarted, state.Reason) {
			text += ": " + state.Message
		}
	}
	for _, pod := range pods {
		if s := pod.Status; s.Phase == corev1.PodFailed && s.Reason != "" {
			return text + fmt.Sprintf("; pod %s was ended: %s: %s", pod.Name, s.Reason, s.Message)
		}
	}
	return text
}

// endsOf returns the end of each container that counts: one that passed in any pod, because what it did remains, or else
// the last one. Other containers, which other programs add to pods, do not count.
func endsOf(names []string, pods []corev1.Pod) map[string]containerEnd {
	ends := map[string]containerEnd{}
	for _, pod := range pods {
		for _, s := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
			state := s.State.Terminated
			if state == nil || !slices.Contains(names, s.Name) {
				continue
			}
			is, was := containerEnd{state, parseResult(state.Message)}, ends[s.Name]
			if is.result != nil && (is.result.Verb != s.Name || is.result.Succeeded != (state.ExitCode == 0)) {
				is.result = nil // another program wrote it, or pgbackup was killed
			}
			later := was.state == nil || was.state.FinishedAt.Time.Before(state.FinishedAt.Time)
			if is.passed() && !was.passed() || is.passed() == was.passed() && later {
				ends[s.Name] = is
			}
		}
	}
	return ends
}
