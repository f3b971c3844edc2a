package faults

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

// podChecks are the checks of pods that are refused.
var podChecks = []suite.Check{
	{ID: "fault/32-pods-limit-range", Run: podsRefused(limitRange),
		Title: "pods that a LimitRange refuses are reported within seconds, with its message; it recovers"},
	{ID: "fault/32-pods-security", Run: podsRefused(podSecurity),
		Title: "pods that Pod Security refuses are reported within seconds, with its message; it recovers"},
	{ID: "fault/32-pods-admission", Run: podsRefused(podPolicy),
		Title: "pods that an admission policy refuses are reported within seconds, with its message; it recovers"},
	{ID: "fault/32-replicaset", Run: podsRefused(replicaSetPolicy),
		Title: "a ReplicaSet that an admission policy refuses is reported within seconds, with its message; it recovers"},
}

// podsRefused creates a MyWeb in a cluster that accepts its Deployment and refuses the pods. The Deployment reports
// the refusal at once, and ten minutes later that its deadline has passed. forbidPods returns a part of the message
// of the refusal, and a function that allows the pods again.
func podsRefused(forbidPods func(t *suite.T) (message string, allow func())) func(*suite.T) {
	return func(t *suite.T) {
		message, allow := forbidPods(t)
		t.Create("web", suite.Sample())
		web := t.Await("web", "is Degraded for ReplicaFailure", 15*time.Second, func(w *suite.Web) bool {
			return w.Degraded("ReplicaFailure") && w.Condition("Available").Status == metav1.ConditionFalse
		})
		t.Says(web, message)
		t.StaysQuiet(time.Second)
		allow()
		web, _ = converged(t, "web")
		t.Recovered(web)
		t.Warned("web", 0, 1)
	}
}

// limitRange requires memory that no pod here requests.
func limitRange(t *suite.T) (message string, allow func()) {
	limits := t.Fixture.Kube.CoreV1().LimitRanges(t.Namespace)
	_, err := limits.Create(t.Context(), &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "much"},
		Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypePod,
			Min: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}}}}}, metav1.CreateOptions{})
	t.Must(err, "create a LimitRange")
	return "minimum memory usage per Pod is 1Gi", func() {
		t.Must(limits.Delete(t.Context(), "much", metav1.DeleteOptions{}), "delete the LimitRange")
	}
}

// podSecurity makes the namespace enforce a Pod Security Standard, and makes another client request more in the pods'
// template.
func podSecurity(t *suite.T) (message string, allow func()) {
	label := func(level string) {
		patch := `{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"` + level + `"}}}`
		_, err := t.Fixture.Kube.CoreV1().Namespaces().Patch(t.Context(), t.Namespace, types.MergePatchType, []byte(patch),
			metav1.PatchOptions{})
		t.Must(err, "label the namespace")
	}
	label("baseline")
	stop := t.Mutate(suite.Deployments, `[JSONPatch{op: "add", path: "/spec/template/spec/hostPID", value: true}]`)
	return "violates PodSecurity", func() { stop(); label("privileged") }
}

func podPolicy(t *suite.T) (message string, allow func()) {
	return notAllowed, t.Forbid("pods", "false", notAllowed)
}

func replicaSetPolicy(t *suite.T) (message string, allow func()) {
	return notAllowed, t.Forbid("replicasets.apps", "false", notAllowed)
}
