package controller

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"k8s.io/client-go/tools/events"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
)

// dieAfter lets so many writes reach the API server. The answer to the last one does not come back, and
// nothing is sent any more: the process is dead.
func (b *bench) dieAfter(writes int) {
	b.between(func(what string, pass func() (*http.Response, error)) (*http.Response, error) {
		read := strings.HasPrefix(what, http.MethodGet) || strings.HasPrefix(what, "LIST")
		if writes > 0 && !read {
			if writes--; writes == 0 {
				if response, err := pass(); err == nil {
					response.Body.Close()
				}
			}
		}
		if writes == 0 {
			return nil, errors.New("the process is dead")
		}
		return pass()
	})
}

// startAgain puts a reconciler with an empty memory in the place of the dead one.
func (b *bench) startAgain() {
	b.between(nil)
	recorder := events.NewFakeRecorder(100)
	clock := b.Reconciler.Clock
	b.Reconciler = New(b.Reconciler.Client, recorder)
	b.Reconciler.Clock, b.events = clock, recorder.Events
}

func TestAnOperatorThatDiedAfterAnyWriteIsTakenUpByTheNext(t *testing.T) {
	for n := 1; n <= 5; n++ { // three children, the first status, the last status
		t.Run(fmt.Sprintf("after write %d", n), func(t *testing.T) {
			b := newBench(t)
			b.dieAfter(n)
			_, err := b.look()
			if n < 5 { // it died in its first look
				if err == nil {
					t.Error("the process lives")
				}
				b.startAgain()
				b.reconcile()
			}
			b.deploy()
			if _, err := b.look(); (err != nil) != (n == 5) {
				t.Errorf("the pods are ready, the look ended with %v", err)
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
				t.Errorf("at rest %d writes were sent", n)
			}
		})
	}
}
