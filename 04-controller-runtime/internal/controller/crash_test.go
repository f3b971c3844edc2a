package controller

import (
	"fmt"
	"testing"

	"k8s.io/client-go/tools/events"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
	"example.com/operator-workshop/04-controller-runtime/internal/testenv"
)

// startAgain puts a reconciler with an empty memory in the place of the dead one.
func (b *fixture) startAgain() {
	b.between(nil)
	recorder := events.NewFakeRecorder(100)
	clock := b.Reconciler.Clock
	b.Reconciler = New(b.Reconciler.Client, b.Reconciler.live, recorder)
	b.Reconciler.Clock, b.events = clock, recorder.Events
}

func TestAnOperatorThatDiedAfterAnyWriteIsTakenUpByTheNext(t *testing.T) {
	for n := 1; n <= 5; n++ { // three children, the first status, the last status
		t.Run(fmt.Sprintf("after write %d", n), func(t *testing.T) {
			b := newFixture(t)
			b.between(testenv.DieAfter(n))
			_, err := b.reconcileLater()
			if n < 5 { // it died in its first reconcile
				if err == nil {
					t.Error("the process lives")
				}
				b.startAgain()
				b.reconcile()
			}
			b.deploy()
			if _, err := b.reconcileLater(); (err != nil) != (n == 5) {
				t.Errorf("the pods are ready, the reconcile ended with %v", err)
			}
			b.startAgain()
			b.reconcile()
			if web := get(b, &webv1.MyWeb{}); !web.Status.Completed || web.Status.ReadyReplicas != 1 {
				t.Errorf("status is %+v", web.Status)
			}
			if patches := b.writes("PATCH"); patches != 3 {
				t.Errorf("%d child writes, want 3", patches)
			}
			if n := b.reconcile(); n != 0 {
				t.Errorf("in steady state %d writes were sent", n)
			}
		})
	}
}
