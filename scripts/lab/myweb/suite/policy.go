package suite

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/operator-workshop/scripts/examine/fixture"
)

// Forbid makes a policy deny objects of a resource that do not meet a CEL expression, in the namespace of the check,
// until allow is called or the check ends.
func (t *T) Forbid(resource, unless, message string) (allow func()) {
	return t.inForce(t.Trial.Forbid(t.policy(resource), unless, message))
}

// Mutate makes a policy change every object of a resource by a JSON patch in CEL, in the namespace of the check, until
// stop is called or the check ends.
func (t *T) Mutate(resource, patch string) (stop func()) {
	return t.inForce(t.Trial.Mutate(t.policy(resource), patch))
}

// Gate keeps the pods that are created in the namespace of the check from their nodes until open is called.
func (t *T) Gate() (open func()) {
	const gate = `[JSONPatch{op: "add", path: "/spec/schedulingGates", value: [{"name": "lab.example.com/gate"}]}]`
	stop := t.Mutate("pods", gate)
	return func() {
		stop()
		all := t.Fixture.Kube.CoreV1().Pods(t.Namespace)
		list, err := all.List(t.Ctx, metav1.ListOptions{})
		t.Must(err, "list pods")
		for _, p := range list.Items {
			_, err := all.Patch(t.Ctx, p.Name, types.MergePatchType, []byte(`{"spec":{"schedulingGates":null}}`),
				metav1.PatchOptions{})
			t.Must(err, "let pod "+p.Name+" be scheduled")
		}
	}
}

// Limit makes a quota in the namespace of the check, until lift is called or the check ends.
func (t *T) Limit(hard corev1.ResourceList) (lift func()) {
	return t.inForce(t.Trial.Limit(t.Namespace, hard))
}

func (t *T) policy(resource string) fixture.Policy {
	return fixture.Policy{Namespace: t.Namespace, Resource: GVR(resource)}
}

// inForce returns a function that removes a policy or quota.
func (t *T) inForce(away func() error, err error) (remove func()) {
	t.Must(err, "put a policy or quota in force")
	return func() { t.Must(away(), "remove a policy or quota") }
}
