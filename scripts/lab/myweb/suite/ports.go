package suite

import (
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// nodePorts are the node ports that checks of all operators under examination can use. They are in the lower part of
// the range, which the API server avoids when it chooses a port itself: it allocates from 30086 on.
var nodePorts = newPool(30001, 30080)

// A pool hands out numbers. A returned number is handed out again after all others.
type pool struct {
	mu   sync.Mutex
	free []int32
}

func newPool(first, last int32) *pool {
	p := &pool{}
	for n := first; n <= last; n++ {
		p.free = append(p.free, n)
	}
	return p
}

func (p *pool) take() (n int32, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.free) == 0 {
		return 0, false
	}
	n, p.free = p.free[0], p.free[1:]
	return n, true
}

func (p *pool) put(n ...int32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = append(p.free, n...)
}

// NodePort is a node port that only this check uses until it ends, and that no Service has: the Service of an earlier
// check may still exist.
func (t *T) NodePort() int32 {
	for {
		port, ok := nodePorts.take()
		if !ok {
			t.Fatalf("no node port of the lab is free")
		}
		t.ports = append(t.ports, port)
		if !slices.Contains(t.portsOfServices(), port) {
			return port
		}
	}
}

// portsOfServices are the node ports of all Services.
func (t *T) portsOfServices() (ports []int32) {
	if t.Fixture.Kube == nil {
		return nil
	}
	list, err := t.Fixture.Kube.CoreV1().Services("").List(t.ctx, metav1.ListOptions{})
	t.Must(err, "list the Services")
	for _, s := range list.Items {
		for _, p := range s.Spec.Ports {
			ports = append(ports, p.NodePort)
		}
	}
	return ports
}
