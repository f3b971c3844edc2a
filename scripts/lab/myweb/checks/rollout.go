package checks

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/operator-workshop/scripts/examine/fixture"
	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

// stuck returns the MyWeb when its status reports a rollout that does not end, and whether the site is available.
func stuck(t *suite.T, reason string, available metav1.ConditionStatus, within time.Duration) *suite.Web {
	what := "is Degraded by " + reason + ", and Available is " + string(available)
	return t.Await("web", what, within, func(w *suite.Web) bool {
		return w.Degraded(reason) && w.Condition("Available").Status == available
	})
}

// rolloutStuck makes the pods of the next rollout fit on no node, and gives the Deployment a deadline of a second.
// Neither is a field of the operator.
func rolloutStuck(t *suite.T) {
	web := t.Serve("web", suite.Sample())
	t.Edit(suite.Deployments, "web",
		`{"spec":{"progressDeadlineSeconds":1,"template":{"spec":{"nodeSelector":{"lab":"nowhere"}}}}}`)
	t.AwaitQuiet(quiet)
	spec := t.Children(web).Deployment.Spec
	if s := spec.ProgressDeadlineSeconds; s == nil || *s != 1 || len(spec.Template.Spec.NodeSelector) == 0 {
		t.Skipf("the operator restores the Deployment's progressDeadlineSeconds to %s, or its nodeSelector: "+
			"08-old-pods-gone tests it", suite.JSON(s))
	}
	t.SetPage("web", "<h1>Nowhere</h1>")
	web = stuck(t, progressDeadlineExceeded, metav1.ConditionTrue, 40*time.Second)
	if web.Status.ReadyReplicas != 1 {
		t.Errorf("status.readyReplicas is %d, the old pod is ready", web.Status.ReadyReplicas)
	}
	t.Edit(suite.Deployments, "web", `{"spec":{"template":{"spec":{"nodeSelector":null}}}}`)
	recovers(t)
}

// soon is how long the status may take to report a condition of the Deployment.
const soon = 10 * time.Second

// paused pauses the rollouts of a Deployment. Without a waiting rollout, the operator need not report this: the
// Deployment scales as before.
func paused(t *suite.T) {
	t.Serve("web", suite.Sample())
	h := t.Follow()
	t.Edit(suite.Deployments, "web", `{"spec":{"paused":true}}`)
	t.AwaitQuiet(quiet)
	t.Patch("web", `{"spec":{"replicas":2}}`)
	h.NeverDegraded(t.Completed("web"))
	t.SetPage("web", "<h1>Paused</h1>")
	web := stuck(t, deploymentPaused, metav1.ConditionTrue, soon)
	if c := web.Condition("Progressing"); c.Status != metav1.ConditionFalse || c.Reason != deploymentPaused {
		t.Errorf("Progressing is %s: %s: %s", c.Status, c.Reason, c.Message)
	}
	t.Says(web, "kubectl rollout resume")
	t.Edit(suite.Deployments, "web", `{"spec":{"paused":null}}`)
	recovers(t)
	t.Warned("web", 0, 1) // the reason of a lasting condition does not change
}

// oldPodsGone stops the controllers of the cluster and writes the Deployment's status as they would.
func oldPodsGone(t *suite.T) {
	web := t.Serve("web", suite.Sample())
	resume := t.Stop(fixture.ControllerManager)
	t.Patch("web", `{"spec":{"image":"example.com/never"}}`)
	t.Eventually("the Deployment has the new image", 0, func() error { return t.Children(web).Follow(t.Web("web").Spec) })
	rolloutFails(t, web, 1)
	stuck(t, progressDeadlineExceeded, metav1.ConditionTrue, 0)
	all := t.Fixture.Kube.CoreV1().Pods(t.Namespace)
	for _, p := range pods(t, web.Status.Selector) {
		t.Must(all.Delete(t.Ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}), "delete the old pod")
	}
	rolloutFails(t, web, 0)
	now := stuck(t, progressDeadlineExceeded, metav1.ConditionFalse, 0)
	if now.Status.ReadyReplicas != 0 {
		t.Errorf("status.readyReplicas is %d, no pod is left", now.Status.ReadyReplicas)
	}
	resume()
	t.Completed("web")
}

// rolloutFails writes a status with a failed rollout of the newest template, and with the number of old pods that are
// ready.
func rolloutFails(t *suite.T, web *suite.Web, ready int32) {
	d := t.Children(web).Deployment
	available := corev1.ConditionTrue
	if ready == 0 {
		available = corev1.ConditionFalse
	}
	now := metav1.Now()
	d.Status = appsv1.DeploymentStatus{
		ObservedGeneration: d.Generation, Replicas: ready, ReadyReplicas: ready, AvailableReplicas: ready,
		UnavailableReplicas: 1, Conditions: []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentAvailable, Status: available, Reason: "ByTheLab", LastUpdateTime: now,
				LastTransitionTime: now},
			{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: progressDeadlineExceeded,
				Message: "ReplicaSet has timed out progressing.", LastUpdateTime: now, LastTransitionTime: now}}}
	_, err := t.Fixture.Kube.AppsV1().Deployments(t.Namespace).UpdateStatus(t.Ctx, d, metav1.UpdateOptions{})
	t.Must(err, "write the Deployment's status")
}
