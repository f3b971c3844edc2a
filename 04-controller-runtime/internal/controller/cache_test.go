package controller

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
)

func myWeb(port *int32) *webv1.MyWeb {
	return &webv1.MyWeb{Spec: webv1.MyWebSpec{NodePortNumber: port}, Status: webv1.MyWebStatus{NodePort: 30200}}
}

func TestTheNodePortsOfTheIndexes(t *testing.T) {
	service := func(spec corev1.ServiceSpec) client.Object { return &corev1.Service{Spec: spec} }
	for name, test := range map[string]struct {
		index client.IndexerFunc
		obj   client.Object
		want  []string
	}{
		"a MyWeb that asks for one":   {askedNodePort, myWeb(new(int32(30100))), []string{"30100"}},
		"a MyWeb that leaves it open": {askedNodePort, myWeb(nil), nil},
		"a MyWeb that has one":        {nodePorts, myWeb(nil), []string{"30200"}},
		"a Service without one":       {nodePorts, service(corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}), nil},
		"a Service with two": {nodePorts,
			service(corev1.ServiceSpec{Ports: []corev1.ServicePort{{NodePort: 1}, {}, {NodePort: 2}}}), []string{"1", "2"}},
		"a Service whose health check is": {nodePorts, service(corev1.ServiceSpec{HealthCheckNodePort: 3}), []string{"3"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.index(test.obj); !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestTheCacheIsOfTheNamedNamespaces(t *testing.T) {
	if got := CacheOptions(nil).DefaultNamespaces; got != nil {
		t.Errorf("none are named, the cache is of %v", got)
	}
	if got := CacheOptions([]string{"a", "b"}).DefaultNamespaces; len(got) != 2 {
		t.Errorf("two are named, the cache is of %v", got)
	}
}
