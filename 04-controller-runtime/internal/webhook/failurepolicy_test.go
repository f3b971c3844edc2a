package webhook

import (
	"context"
	"net"
	"sync/atomic"
	"testing"

	"github.com/onsi/gomega"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestNobodyAnswers tests the shipped failure policies with a port where every call breaks off.
func TestNobodyAnswers(t *testing.T) {
	ns := namespace(t)
	web := create(t, myweb(ns, "web", page("x"), port(30520)))
	calls := &atomic.Int64{}
	for _, u := range shippedByURL(t, "https://"+breakOff(t, calls)) {
		must(t, admin.Create(t.Context(), u))
		t.Cleanup(func() { must(t, admin.Delete(context.Background(), u)) })
	}
	eventually(t, func(g gomega.Gomega) {
		err := admin.Create(t.Context(), myweb(ns, "other"), client.DryRunAll)
		g.Expect(apierrors.IsInternalError(err)).To(gomega.BeTrue(), "a MyWeb without page must wait: %v", err)
		g.Expect(err.Error()).To(gomega.ContainSubstring("failed calling webhook"))
	})
	eventually(t, func(g gomega.Gomega) { // with a page only the validating webhook is called
		before := calls.Load()
		g.Expect(admin.Create(t.Context(), myweb(ns, "another", page("y"), port(30520)), client.DryRunAll)).
			To(gomega.Succeed())
		g.Expect(calls.Load()).To(gomega.BeNumerically(">", before), "the webhook was not called")
	})

	web.Spec.NodePortNumber, web.Spec.Image = nil, "nginx"
	must(t, admin.Update(t.Context(), web))
	before := calls.Load()
	web.Spec.Replicas = new(int32(2))
	must(t, admin.Update(t.Context(), web))
	web.Status.ReadyReplicas = 1
	must(t, admin.Status().Update(t.Context(), web))
	must(t, admin.Delete(t.Context(), web))
	if calls.Load() != before {
		t.Error("requests that do not matter were sent to the webhooks")
	}
}

// breakOff returns an address where connections are counted and closed.
func breakOff(t *testing.T, calls *atomic.Int64) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			calls.Add(1)
			conn.Close()
		}
	}()
	return l.Addr().String()
}
