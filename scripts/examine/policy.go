package examine

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"example.com/operator-workshop/scripts/examine/fixture"
)

// refusal is the message of a policy, which the operator should report to its users.
const refusal = "the examination does not allow this object"

// policy guards the children of a resource, where the sample has its children.
func (t *trial) policy(c child) fixture.Policy {
	return fixture.Policy{Namespace: cmp.Or(c.Namespace, t.Namespace), Everywhere: t.target.cluster, Resource: c.GVR}
}

// refuse makes a policy refuse a child, until allow is called.
func (t *trial) refuse(c child) (allow func() error, err error) {
	return t.forbid(c, refusal)
}

// refuseAtLength is refuse with a message that is longer than the limit of an event.
func (t *trial) refuseAtLength(c child) (allow func() error, err error) {
	return t.forbid(c, refusal+strings.Repeat(", and explains why", 100))
}

func (t *trial) forbid(c child, message string) (allow func() error, err error) {
	return t.Forbid(t.policy(c), fmt.Sprintf("object.metadata.name != %q", c.Name), message)
}

// mutate makes a policy change a field of a child, until stop is called.
func (t *trial) mutate(m mutation) (stop func() error, err error) {
	value, err := json.Marshal(m.value)
	if err != nil {
		return nil, err
	}
	return t.Mutate(t.policy(m.child), fmt.Sprintf(
		`object.metadata.name == %q ? [JSONPatch{op: "replace", path: %q, value: %s}] : []`, m.child.Name, m.pointer, value))
}

// limit makes a quota refuse all children of a resource, until lift is called.
func (t *trial) limit(c child) (lift func() error, err error) {
	name := corev1.ResourceName("count/" + c.GVR.GroupResource().String())
	return t.Limit(cmp.Or(c.Namespace, t.Namespace), corev1.ResourceList{name: resource.MustParse("0")})
}
