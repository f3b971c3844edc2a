package operator

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/example/nginx-operator/internal/hardening"
)

// newPaced returns a client whose status writes are counted instead of sent, and a function that writes one and returns
// how long it must wait.
func newPaced(t *testing.T) (write func(types.UID) time.Duration, now *clocktesting.FakePassiveClock, fail func(error)) {
	t.Helper()
	now = clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	var answer error
	c := Paced(interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		SubResourceUpdate: func(context.Context, client.Client, string, client.Object,
			...client.SubResourceUpdateOption) error {
			return answer
		},
	}), now)
	write = func(uid types.UID) time.Duration {
		t.Helper()
		err := c.Status().Update(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid}})
		wait, waits := errors.AsType[hardening.RequeueAfter](err)
		if !waits && !errors.Is(err, answer) {
			t.Fatal(err)
		}
		return time.Duration(wait)
	}
	return write, now, func(err error) { answer = err }
}

func TestTwoStatusesAtOnceThenOneEveryTwoSeconds(t *testing.T) {
	write, now, fail := newPaced(t)
	take := func(uid types.UID, want time.Duration) {
		t.Helper()
		if got := write(uid); got != want {
			t.Errorf("%s waits %s, want %s", uid, got, want)
		}
	}
	pass := func(d time.Duration) { now.SetTime(now.Now().Add(d)) }
	fail(errors.New("connection refused"))
	take("mine", 0) // a write that fails does not count
	fail(nil)
	take("mine", 0)
	take("mine", 0)
	take("mine", 2*time.Second)
	take("mine", 2*time.Second) // a call that has to wait does not count
	take("other", 0)            // another resource has its own limit
	pass(time.Second)
	take("mine", time.Second)
	pass(time.Second)
	take("mine", 0)
	take("mine", 2*time.Second)
	pass(time.Hour)
	take("mine", 0)
	take("mine", 0)
	take("mine", 2*time.Second) // a pause does not allow more than the burst
}
