package controller

import (
	"strings"
	"testing"

	"github.com/onsi/gomega"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	proxyv1alpha1 "github.com/example/nginx-operator/api/v1alpha1"
)

// The operator need not handle a spec that it cannot serve: the API server refuses the spec by the CRD, and
// names the allowed values.
func TestABadSpecNeverReachesTheOperator(t *testing.T) {
	c := newCluster(t)
	type spec = map[string]any
	for name, test := range map[string]struct {
		name        string
		spec        spec
		field, says string
	}{
		"a negative count":       {site, spec{"count": int64(-1)}, "spec.count", "should be greater than or equal to 0"},
		"no count":               {site, spec{}, "spec.count", "Required value"},
		"half a pod":             {site, spec{"count": 1.5}, "spec.count", "must be of type integer"},
		"more than a number has": {site, spec{"count": int64(1) << 31}, "spec.count", "int32"},
		"an empty image":         {site, spec{"count": int64(1), "image": ""}, "spec.image", "at least 1 char"},
		"content without a name": {site, spec{"count": int64(1), "contentRef": spec{}}, "spec.contentRef.name",
			"Required value"},
		"an unknown type": {site, spec{"count": int64(1), "service": spec{"type": "ExternalName"}},
			"spec.service.type", `supported values: "ClusterIP", "NodePort", "LoadBalancer"`},
		"a name with a digit": {"1st", spec{"count": int64(1)}, "metadata", "start with a letter"},
		"a name with a dot":   {"a.b", spec{"count": int64(1)}, "metadata", "only lower-case letters, digits and '-'"},
		"a name too long":     {strings.Repeat("a", 64), spec{"count": int64(1)}, "metadata", "at most 63 characters"},
	} {
		bad := &unstructured.Unstructured{Object: map[string]any{"spec": test.spec}}
		bad.SetGroupVersionKind(proxyv1alpha1.GroupVersion.WithKind("Nginx"))
		bad.SetNamespace(c.namespace)
		bad.SetName(test.name)
		err := c.Create(t.Context(), bad)
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), test.field+": ") ||
			!strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: got %v, want %s and %q", name, err, test.field, test.says)
		}
	}
	longest := c.ask(strings.Repeat("a", 63))
	c.Expect(longest.Spec.Service.Type).To(gomega.Equal("ClusterIP"), "the default")
}

func TestScaleIsTheCount(t *testing.T) {
	c := newCluster(t)
	nginx := c.ask(site)
	scale := &autoscalingv1.Scale{}
	c.must(c.SubResource("scale").Get(t.Context(), nginx, scale))
	c.Expect(scale.Spec.Replicas).To(gomega.Equal(int32(3)))
	for _, n := range []int32{7, 0} {
		scale.Spec.Replicas = n
		c.must(c.SubResource("scale").Update(t.Context(), nginx, client.WithSubResourceBody(scale)))
		c.Expect(c.nginx(site).Spec.Count).To(gomega.Equal(n))
	}
	scale.Spec.Replicas = -1
	err := c.SubResource("scale").Update(t.Context(), nginx, client.WithSubResourceBody(scale))
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.count: ") {
		t.Errorf("-1 through scale: %v", err)
	}
}
