package controller

import (
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestTwoStatusesAtOnceThenOneEveryTwoSeconds(t *testing.T) {
	var p pace
	mine, other, now := client.ObjectKey{Name: "mine"}, client.ObjectKey{Name: "other"}, time.Unix(1000, 0)
	take := func(key client.ObjectKey, want time.Duration) {
		t.Helper()
		if got := p.take(key, now); got != want {
			t.Errorf("%s waits %s, want %s", key.Name, got, want)
		}
	}
	take(mine, 0)
	take(mine, 0)
	take(mine, 2*time.Second)
	take(mine, 2*time.Second) // a call that has to wait takes nothing
	take(other, 0)            // has its own limit
	now = now.Add(time.Second)
	take(mine, time.Second)
	now = now.Add(time.Second)
	take(mine, 0)
	take(mine, 2*time.Second)
	now = now.Add(time.Hour)
	take(mine, 0)
	take(mine, 0)
	take(mine, 2*time.Second) // rest is not saved up
	p.forget(mine)
	take(mine, 0)
	if len(p.limit) != 2 {
		t.Errorf("%d limiters are kept, want 2", len(p.limit))
	}
}

func TestThousandsOfChangesInTheUnitOfTime(t *testing.T) {
	var p pace
	key, begin := client.ObjectKey{Name: "busy"}, time.Unix(1000, 0)
	writes := 0
	for i := range 10000 { // one each millisecond
		if p.take(key, begin.Add(time.Duration(i)*time.Millisecond)) == 0 {
			writes++
		}
	}
	if want := 6; writes != want { // two at once, then after 2, 4, 6 and 8 s
		t.Errorf("10 s of changes brought %d writes, want %d", writes, want)
	}
}
