package hardening

import (
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	webv1 "example.com/operator-workshop/03-client-go-controller/pkg/apis/myweb/v1"
)

var site = &metav1.ObjectMeta{Namespace: "default", Name: "site", UID: "u-1"}

func TestDriftCorrectionIsLimitedForEachObject(t *testing.T) {
	now := noon.Time
	var m Memory
	r := m.Of(site)
	for i := range driftBurst {
		if wait := r.driftDelay("Service", now); wait != 0 {
			t.Fatalf("correction number %d has to wait %s", i+1, wait)
		}
		r.driftCorrected("Service", now)
	}
	for range 3 { // asking counts nothing
		if wait := r.driftDelay("Service", now); wait != driftEvery {
			t.Fatalf("one too many has to wait %s, want %s", wait, driftEvery)
		}
	}
	if wait := m.Of(&metav1.ObjectMeta{Name: "other"}).driftDelay("Service", now); wait != 0 {
		t.Errorf("another object has to wait %s", wait)
	}
	if wait := r.driftDelay("ConfigMap", now); wait != 0 {
		t.Errorf("another kind has to wait %s", wait)
	}
	now = now.Add(driftEvery)
	if wait := m.Of(site).driftDelay("Service", now); wait != 0 {
		t.Errorf("after its time it still has to wait %s", wait)
	}
	r.driftCorrected("Service", now)
	if wait := r.driftDelay("Service", now.Add(driftEvery/2)); wait.Round(time.Millisecond) != driftEvery/2 {
		t.Errorf("half the time passed, it has to wait %s", wait)
	}
	m.Forget(types.NamespacedName{Namespace: "default", Name: "site"})
	if wait := m.Of(site).driftDelay("Service", now); wait != 0 {
		t.Errorf("a new object of the same name has to wait %s", wait)
	}
}

func TestWhichStatusIsFalsified(t *testing.T) {
	status := webv1.MyWebStatus{Completed: true,
		Conditions: []metav1.Condition{{Type: "Available", LastTransitionTime: noon}}}
	other := *status.DeepCopy()
	other.Conditions[0].Message = "lie"
	var m Memory
	r := m.Of(site)
	if r.statusFalsified(other) {
		t.Error("nothing is known of an object that was never seen")
	}
	r.StatusWritten(status)
	if r.statusFalsified(*status.DeepCopy()) || !r.statusFalsified(other) {
		t.Error("want the one that was written to be true, and another one falsified")
	}
	r.StatusNotWritten(apierrors.NewConflict(schema.GroupResource{Resource: "mywebs"}, "site", nil))
	if !r.statusFalsified(other) {
		t.Error("a conflict means that nothing was written")
	}
	anew := &metav1.ObjectMeta{Namespace: "default", Name: "site", UID: "u-2"}
	if m.Of(anew).statusFalsified(webv1.MyWebStatus{}) {
		t.Error("the first status of a MyWeb that was made anew under the name is taken for a falsified one")
	}
	r.StatusNotWritten(errors.New("connection reset by peer"))
	if r.statusFalsified(other) {
		t.Error("a write whose answer got lost may have been carried out")
	}
}
