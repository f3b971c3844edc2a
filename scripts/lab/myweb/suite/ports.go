package suite

import (
	"slices"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The node ports that checks of all operators under examination can use are in the lower part of the range, which the
// API server avoids when it chooses a port itself: it allocates from 30086 on. All of them are handed out before the
// first is handed out again.
const (
	firstPort = 30001
	allPorts  = 80
)

var handedOut atomic.Int32

// NodePort is a node port that no other running check got, and that no Service has: the Service of an earlier check
// may still exist.
func (t *T) NodePort() int32 {
	used := t.portsOfServices()
	for range allPorts {
		port := firstPort + (handedOut.Add(1)-1)%allPorts
		if !slices.Contains(used, port) {
			return port
		}
	}
	t.Fatalf("no node port of the lab is free")
	return 0
}

// portsOfServices are the node ports of all Services.
func (t *T) portsOfServices() (ports []int32) {
	if t.Fixture.Kube == nil {
		return nil
	}
	list, err := t.Fixture.Kube.CoreV1().Services("").List(t.Ctx, metav1.ListOptions{})
	t.Must(err, "list the Services")
	for _, s := range list.Items {
		for _, p := range s.Spec.Ports {
			ports = append(ports, p.NodePort)
		}
	}
	return ports
}
