package checks

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

// replicaSetRefused creates a MyWeb in a cluster that accepts its Deployment and refuses the ReplicaSet. The Deployment
// reports the refusal at once, and ten minutes later that its deadline has passed.
func replicaSetRefused(t *suite.T) {
	allow := t.Forbid("replicasets.apps", "false", notAllowed)
	t.Create("web", suite.Sample())
	reportsRefusal(t, 15*time.Second, metav1.ConditionFalse, notAllowed, allow)
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
