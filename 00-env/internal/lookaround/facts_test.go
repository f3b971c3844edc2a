package lookaround

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func node(version, annotation string) corev1.Node {
	n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"kwok.x-k8s.io/node": annotation}}}
	n.Status.NodeInfo.KubeletVersion = version
	return n
}

func TestEnvironment(t *testing.T) {
	noReport, simulated, real := node("", "fake"), node("kwok-0.8.0", ""), node("v1.37.1", "")
	older := node("v1.37.1", "fake") // the version was there before kwok
	for name, test := range map[string]struct {
		controllers bool
		nodes       []corev1.Node
		want        Environment
	}{
		"an API server":                             {false, nil, EnvironmentEnvtest},
		"objects of nodes do not make a cluster":    {false, []corev1.Node{noReport}, EnvironmentEnvtest},
		"controllers without nodes":                 {true, nil, EnvironmentNodeless},
		"controllers and a node that never reports": {true, []corev1.Node{noReport}, EnvironmentNodeless},
		"simulated nodes":                           {true, []corev1.Node{simulated, older, noReport}, EnvironmentLocal},
		"a real node and a simulated one":           {true, []corev1.Node{real, simulated}, EnvironmentReal},
	} {
		f := Facts{Controllers: test.controllers, Nodes: test.nodes}
		if got := f.Environment(); got != test.want {
			t.Errorf("%s: got %s, want %s", name, got, test.want)
		}
	}
}
