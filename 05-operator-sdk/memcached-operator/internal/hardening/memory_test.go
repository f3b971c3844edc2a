package hardening

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func object(name string, uid types.UID) client.Object {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: uid}}
}

func TestDriftCorrectionIsLimitedForEachResource(t *testing.T) {
	site, now := object("site", "u-1"), time.Unix(1000, 0)
	var m Memory
	for i := range driftBurst {
		if wait := m.Of(site).DriftDelay(now); wait != 0 {
			t.Fatalf("correction number %d has to wait %s", i+1, wait)
		}
		m.Of(site).DriftCorrected(now)
	}
	for range 3 { // asking counts nothing
		if wait := m.Of(site).DriftDelay(now); wait != driftEvery {
			t.Fatalf("one too many has to wait %s, want %s", wait, driftEvery)
		}
	}
	if wait := m.Of(object("other", "u-2")).DriftDelay(now); wait != 0 {
		t.Errorf("another resource has to wait %s", wait)
	}
	now = now.Add(driftEvery)
	if wait := m.Of(site).DriftDelay(now); wait != 0 {
		t.Errorf("after its time it still has to wait %s", wait)
	}
	m.Of(site).DriftCorrected(now)
	if wait := m.Of(site).DriftDelay(now.Add(driftEvery / 2)); wait.Round(time.Millisecond) != driftEvery/2 {
		t.Errorf("half the time passed, it has to wait %s", wait)
	}
	if wait := m.Of(object("site", "u-3")).DriftDelay(now); wait != 0 {
		t.Errorf("a new resource of the same name has to wait %s", wait)
	}
	m.Forget(client.ObjectKeyFromObject(site))
	m.resources.Range(func(key, _ any) bool {
		if key == client.ObjectKeyFromObject(site) {
			t.Error("it was not forgotten")
		}
		return true
	})
}

func TestWhichStatusIsFalsified(t *testing.T) {
	own, other := corev1.PodStatus{Phase: corev1.PodRunning}, corev1.PodStatus{Phase: corev1.PodFailed}
	r := new(Memory).Of(object("site", "u-1"))
	if live := other; RestoreStatus(r, &live) || live.Phase != corev1.PodFailed {
		t.Error("nothing is known of a resource that was never seen")
	}
	r.SetStatus(own)
	if live := own; RestoreStatus(r, &live) {
		t.Error("the operator's own status is called falsified")
	}
	if live := other; !RestoreStatus(r, &live) || live.Phase != corev1.PodRunning {
		t.Errorf("a falsified status is not put back: %s", live.Phase)
	}
	r.SetStatus(nil)
	if live := other; RestoreStatus(r, &live) {
		t.Error("a write whose answer got lost may have been carried out")
	}
}
