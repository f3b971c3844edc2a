package myweb

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
)

// NodePorts are those that no other object can have while this one does: a Service, or a MyWeb through its Service.
func NodePorts(obj any) (ports []string) {
	add := func(port int32) {
		if port != 0 {
			ports = append(ports, strconv.Itoa(int(port)))
		}
	}
	switch obj := obj.(type) {
	case *webv1.MyWeb:
		add(obj.Status.NodePort)
	case *corev1.Service:
		for _, port := range obj.Spec.Ports {
			add(port.NodePort)
		}
		add(obj.Spec.HealthCheckNodePort)
	}
	return ports
}
