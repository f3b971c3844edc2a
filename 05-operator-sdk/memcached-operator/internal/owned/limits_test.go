package owned

import (
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestRestoringIsLimitedForEachOwner(t *testing.T) {
	site, other := client.ObjectKey{Namespace: "default", Name: "site"}, client.ObjectKey{Namespace: "default", Name: "other"}
	now := noon.Time
	var r limits
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
		t.Errorf("another owner has to wait %s", wait)
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
		t.Errorf("a new owner of the same name has to wait %s", wait)
	}
}
