package lookaround

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestEnvironmentOf(t *testing.T) {
	for name, test := range map[string]struct {
		controllers bool
		nodes       []Kubelet
		want        Environment
	}{
		"nothing but an API server":                {false, nil, EnvironmentEnvtest},
		"records of nodes do not make a cluster":   {false, []Kubelet{KubeletAbsent}, EnvironmentEnvtest},
		"controllers without nodes":                {true, nil, EnvironmentNodeless},
		"controllers and a node that never spoke":  {true, []Kubelet{KubeletAbsent}, EnvironmentNodeless},
		"simulated nodes":                          {true, []Kubelet{KubeletSimulated, KubeletSimulated}, EnvironmentLocal},
		"simulated nodes and one that never spoke": {true, []Kubelet{KubeletSimulated, KubeletAbsent}, EnvironmentLocal},
		"a real node":                              {true, []Kubelet{KubeletReal}, EnvironmentReal},
		"a real node and a simulated one":          {true, []Kubelet{KubeletReal, KubeletSimulated}, EnvironmentReal},
	} {
		t.Run(name, func(t *testing.T) {
			f := Facts{Controllers: test.controllers}
			for _, k := range test.nodes {
				f.Nodes = append(f.Nodes, Node{Kubelet: k})
			}
			if got := EnvironmentOf(f); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestNodesOf(t *testing.T) {
	node := func(name, version string, annotations map[string]string, conditions ...corev1.NodeCondition) corev1.Node {
		n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations}}
		n.Status.NodeInfo.KubeletVersion = version
		n.Status.Conditions = conditions
		return n
	}
	ready := corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue}
	unknown := corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}
	pressure := corev1.NodeCondition{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse}
	kwok := map[string]string{kwokAnnotation: "fake"}

	got := nodesOf([]corev1.Node{
		node("f", "v1.37.1", nil, pressure, ready),
		node("e", "v1.37.1", nil, ready, pressure),
		node("d", "v1.37.1", nil, unknown),
		node("c", "v1.37.1", kwok, ready), // a version that was set before kwok came
		node("b", "kwok-0.8.0", nil, ready),
		node("a", "", kwok), // marked for kwok, which does not run
	})
	want := []Node{
		{Name: "a", Kubelet: KubeletAbsent},
		{Name: "b", Kubelet: KubeletSimulated, Version: "kwok-0.8.0", Ready: true},
		{Name: "c", Kubelet: KubeletSimulated, Version: "v1.37.1", Ready: true},
		{Name: "d", Kubelet: KubeletReal, Version: "v1.37.1"},
		{Name: "e", Kubelet: KubeletReal, Version: "v1.37.1", Ready: true},
		{Name: "f", Kubelet: KubeletReal, Version: "v1.37.1", Ready: true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestGroupsOf(t *testing.T) {
	list := func(gv string, resources ...metav1.APIResource) *metav1.APIResourceList {
		return &metav1.APIResourceList{GroupVersion: gv, APIResources: resources}
	}
	got := groupsOf([]*metav1.APIResourceList{
		list("apps/v1", metav1.APIResource{Name: "deployments", Kind: "Deployment"},
			metav1.APIResource{Name: "deployments/scale", Kind: "Scale"}),
		list("v1", metav1.APIResource{Name: "pods", Kind: "Pod"}, metav1.APIResource{Name: "services", Kind: "Service"}),
		list("example.com/v1", metav1.APIResource{Name: "toys", Kind: "Toy"}),
		list("example.com/v1beta1", metav1.APIResource{Name: "toys", Kind: "Toy"},
			metav1.APIResource{Name: "boxes", Kind: "Box"}),
	}, []schema.GroupVersion{{Group: "metrics.k8s.io", Version: "v1beta1"}},
		[]string{"toys.example.com", "boxes.example.com", "gone.elsewhere.org"})
	want := []Group{
		{Name: "", Kinds: 2},
		{Name: "apps", Kinds: 1},
		{Name: "example.com", Kinds: 2, CRDs: 2},
		{Name: "metrics.k8s.io", Unavailable: true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
