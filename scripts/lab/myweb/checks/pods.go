package checks

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
	{ID: "fault/32-pods-limit-range", Run: func(t *suite.T) { podsRefused(t, limitRange) },
		Title: "pods that a LimitRange refuses are reported within seconds, with its message; it recovers"},
	{ID: "fault/32-pods-security", Run: func(t *suite.T) { podsRefused(t, podSecurity) },
		Title: "pods that Pod Security refuses are reported within seconds, with its message; it recovers"},
	{ID: "fault/32-pods-admission", Run: func(t *suite.T) { podsRefused(t, policy("pods")) },
		Title: "pods that an admission policy refuses are reported within seconds, with its message; it recovers"},
	{ID: "fault/32-replicaset", Run: func(t *suite.T) { podsRefused(t, policy("replicasets.apps")) },
		Title: "a ReplicaSet that an admission policy refuses is reported within seconds, with its message; it recovers"},
}

// A refusal forbids pods. It returns a part of the message, and a function that allows the pods again.
type refusal func(t *suite.T) (message string, allow func())

// podsRefused creates a MyWeb in a cluster that accepts its Deployment and refuses the pods. The Deployment reports
// the refusal at once, and ten minutes later that its deadline has passed.
func podsRefused(t *suite.T, forbid refusal) {
	message, allow := forbid(t)
	t.Create("web", suite.Sample())
	reportsRefusal(t, 15*time.Second, metav1.ConditionFalse, message, allow)
}

// morePodsRefused gives the namespace of a served MyWeb a quota for its one existing pod.
func morePodsRefused(t *suite.T) {
	t.Serve("web", suite.Sample())
	lift := t.Limit(corev1.ResourceList{corev1.ResourcePods: resource.MustParse("1")})
	t.SetPage("web", "<h1>Too much</h1>")
	reportsRefusal(t, soon, metav1.ConditionTrue, "exceeded quota: lab", lift)
}

// reportsRefusal expects that a refusal of pods is reported, and that the MyWeb is served when they are allowed.
func reportsRefusal(t *suite.T, within time.Duration, available metav1.ConditionStatus, message string, allow func()) {
	t.Says(stuck(t, replicaFailure, available, within), message)
	t.StaysQuiet(time.Second)
	allow()
	recovers(t)
	t.Warned("web", 0, 1) // the reason of a lasting condition does not change
}

// limitRange requires memory that no pod here requests.
func limitRange(t *suite.T) (message string, allow func()) {
	limits := t.Fixture.Kube.CoreV1().LimitRanges(t.Namespace)
	_, err := limits.Create(t.Ctx, &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "much"},
		Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypePod,
			Min: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}}}}}, metav1.CreateOptions{})
	t.Must(err, "create a LimitRange")
	return "minimum memory usage per Pod is 1Gi", func() {
		t.Must(limits.Delete(t.Ctx, "much", metav1.DeleteOptions{}), "delete the LimitRange")
	}
}

// podSecurity makes the namespace enforce a Pod Security Standard, and makes another client request more in the pods'
// template.
func podSecurity(t *suite.T) (message string, allow func()) {
	label := func(level string) {
		patch := `{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"` + level + `"}}}`
		_, err := t.Fixture.Kube.CoreV1().Namespaces().Patch(t.Ctx, t.Namespace, types.MergePatchType, []byte(patch),
			metav1.PatchOptions{})
		t.Must(err, "label the namespace")
	}
	label("baseline")
	stop := t.Mutate(suite.Deployments, `[JSONPatch{op: "add", path: "/spec/template/spec/hostPID", value: true}]`)
	return "violates PodSecurity", func() { stop(); label("privileged") }
}

// policy makes an admission policy refuse the objects of a resource.
func policy(resource string) refusal {
	return func(t *suite.T) (message string, allow func()) {
		return notAllowed, t.Forbid(resource, "false", notAllowed)
	}
}
