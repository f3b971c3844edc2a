package hook

import (
	"fmt"
	"time"
)

// statusOf returns the status for the observed children. applied reports whether all of them match the newest spec.
func statusOf(web MyWeb, deployment Deployment, service Service, applied bool, now time.Time) Status {
	name := web.Metadata.Name
	s := Status{
		ReadyReplicas: deployment.Status.ReadyReplicas,
		NodePort:      web.Status.NodePort,
		Selector:      fmt.Sprintf("app.kubernetes.io/instance=%s,app.kubernetes.io/name=myweb", name),
	}
	for _, port := range service.Spec.Ports {
		if port.Name == "http" && port.NodePort != 0 {
			s.NodePort = port.NodePort
		}
	}
	s.Completed = applied && rolledOut(deployment, web.replicas()) && s.NodePort != 0
	for _, c := range conditions(web, deployment, s.Completed) {
		c.ObservedGeneration, c.LastTransitionTime = web.Metadata.Generation, now.UTC().Truncate(time.Second)
		for _, old := range web.Status.Conditions { // the time moves only with the status
			if old.Type == c.Type && old.Status == c.Status {
				c.LastTransitionTime = old.LastTransitionTime
			}
		}
		s.Conditions = append(s.Conditions, c)
	}
	return s
}

// rolledOut reports whether exactly the desired pods run, all of the newest template and available.
func rolledOut(d Deployment, replicas int32) bool {
	s := d.Status
	return s.ObservedGeneration >= d.Metadata.Generation && s.UpdatedReplicas == replicas && s.Replicas == replicas &&
		s.AvailableReplicas == replicas
}

func conditions(web MyWeb, d Deployment, completed bool) []Condition {
	available := Condition{Type: "Available", Status: "False", Reason: "NoReadyPod", Message: "no pod is ready"}
	switch {
	case d.Status.ReadyReplicas > 0:
		available.Status, available.Reason, available.Message = "True", "Serving", "pods serve the page"
	case web.replicas() == 0:
		available.Reason, available.Message = "ScaledToZero", "spec.replicas is 0"
	}
	progressing := Condition{Type: "Progressing", Status: "True", Reason: "RollingOut",
		Message: "pods of this generation are coming up"}
	degraded := Condition{Type: "Degraded", Status: "False", Reason: "AsExpected", Message: "nothing is wrong"}
	reason, message := rolloutProblem(d)
	switch {
	case completed:
		progressing.Status, progressing.Reason = "False", "Complete"
		progressing.Message = "the current generation is fully served"
	case reason != "" && !rolledOut(d, web.replicas()):
		degraded.Status, degraded.Reason, degraded.Message = "True", reason, message
		progressing.Status, progressing.Reason, progressing.Message = "False", reason, message
	}
	return []Condition{available, progressing, degraded}
}

// rolloutProblem returns the reason and the message of the problem that keeps a rollout from completing, as the
// Deployment reports it. Both are empty without a problem. A cause comes before the deadline that passes because of it.
func rolloutProblem(d Deployment) (reason, message string) {
	s := d.Status
	if d.Spec.Paused && (s.UpdatedReplicas == 0 || s.UpdatedReplicas < s.Replicas) { // a paused Deployment still scales
		return "DeploymentPaused", "Deployment: it is paused, so its pods are not replaced: continue by " +
			"`kubectl rollout resume deployment " + d.Metadata.Name + "`"
	}
	for _, c := range s.Conditions {
		switch {
		case c.Type == "ReplicaFailure" && c.Status == "True", c.Reason == "ReplicaSetCreateError":
			return "ReplicaFailure", "Deployment: " + c.Reason + ": " + c.Message
		case c.Reason == "ProgressDeadlineExceeded" && s.ObservedGeneration >= d.Metadata.Generation:
			reason, message = c.Reason, "Deployment: "+c.Message
		}
	}
	return reason, message
}
