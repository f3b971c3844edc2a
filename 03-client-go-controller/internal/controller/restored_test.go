package controller

import (
	"testing"
	"time"

	"k8s.io/client-go/tools/cache"
)

func TestRestoringIsLimitedForEachMyWeb(t *testing.T) {
	site, other := cache.NewObjectName("default", "site"), cache.NewObjectName("default", "other")
	now := noon.Time
	var r restoreLimits
	for i := range restoreBurst {
		if wait := r.wait(site, now); wait != 0 {
			t.Fatalf("restoring number %d has to wait %s", i+1, wait)
		}
		r.took(site, now)
	}
	for range 3 { // asking counts nothing
		if wait := r.wait(site, now); wait != restoreEvery {
			t.Fatalf("one too many has to wait %s, want %s", wait, restoreEvery)
		}
	}
	if wait := r.wait(other, now); wait != 0 {
		t.Errorf("another MyWeb has to wait %s", wait)
	}
	now = now.Add(restoreEvery)
	if wait := r.wait(site, now); wait != 0 {
		t.Errorf("after its time it still has to wait %s", wait)
	}
	r.took(site, now)
	if wait := r.wait(site, now); wait != restoreEvery {
		t.Errorf("the next one has to wait %s, want %s", wait, restoreEvery)
	}
	if wait := r.wait(site, now.Add(restoreEvery/2)); wait.Round(time.Millisecond) != restoreEvery/2 {
		t.Errorf("half the time passed, it has to wait %s", wait)
	}
	r.forget(site)
	if wait := r.wait(site, now); wait != 0 {
		t.Errorf("a new MyWeb of the same name has to wait %s", wait)
	}
}
