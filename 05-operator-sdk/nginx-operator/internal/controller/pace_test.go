package controller

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

func TestTwoStatusesAtOnceThenOneEveryTwoSeconds(t *testing.T) {
	pace, now := NewStatusPace(), time.Unix(1000, 0)
	take := func(uid types.UID, want time.Duration) {
		t.Helper()
		if got := pace.delay(uid, now); got != want {
			t.Errorf("%s waits %s, want %s", uid, got, want)
		}
	}
	take("mine", 0)
	take("mine", 0)
	take("mine", 2*time.Second)
	take("mine", 2*time.Second) // a call that has to wait does not count
	take("other", 0)            // another Nginx has its own limit
	now = now.Add(time.Second)
	take("mine", time.Second)
	now = now.Add(time.Second)
	take("mine", 0)
	take("mine", 2*time.Second)
	now = now.Add(time.Hour)
	take("mine", 0)
	take("mine", 0)
	take("mine", 2*time.Second) // a pause does not allow more than the burst
}
