package myweb

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
	"example.com/operator-workshop/04-controller-runtime/internal/owned"
	"example.com/operator-workshop/04-controller-runtime/test/mywebtest"
)

func made(uid string) func(*corev1.ConfigMap) {
	return func(c *corev1.ConfigMap) {
		c.Annotations = map[string]string{Kind.Annotation(): uid + "/0123456789abcdef"}
	}
}

func deleting(c *corev1.ConfigMap) { c.DeletionTimestamp = &noon }

func held(finalizers ...string) func(*corev1.ConfigMap) {
	return func(c *corev1.ConfigMap) { c.Finalizers = finalizers }
}

func TestTheGarbageCollectorsOwnFinalizerHoldsNothing(t *testing.T) {
	got := Kind.Conflict(mywebtest.New(), "ConfigMap",
		mywebtest.Owned("site", "u-1", deleting, held(metav1.FinalizerDeleteDependents)))
	if got == nil || !got.Transient {
		t.Errorf("got %+v", got)
	}
}

const conflict, waiting = owned.ReasonResourceConflict, owned.ReasonWaitingForDeletion

type ownership struct {
	obj     *corev1.ConfigMap
	owner   types.UID // the MyWeb that it concerns
	mine    bool
	reason  string // of the conflict
	message string
}

var ownerships = map[string]ownership{
	"its own child":      {mywebtest.Owned("site", "u-1"), "u-1", true, "", ""},
	"its own, annotated": {mywebtest.Owned("site", "u-1", made("u-1")), "u-1", true, "", ""},
	"its own, the owner reference taken away": {
		mywebtest.Owned("", "", mywebtest.Ownerless, made("u-1")), "u-1", true, "", ""},
	"its own, being deleted": {mywebtest.Owned("site", "u-1", deleting), "u-1", true, waiting, ""},
	"stripped of its owner, being deleted": {
		mywebtest.Owned("", "", mywebtest.Ownerless, made("u-1"), deleting), "u-1", true, waiting, ""},
	"owned besides, and controlled by none": {mywebtest.Owned("site", "u-1",
		func(c *corev1.ConfigMap) { c.OwnerReferences[0].Controller = nil }), "", false, conflict, ""},
	"owned besides, but made by it": {mywebtest.Owned("site", "u-1", made("u-1"),
		func(c *corev1.ConfigMap) { c.OwnerReferences[0].Controller = nil }), "u-1", true, "", ""},
	"its own, held by a finalizer": {
		mywebtest.Owned("site", "u-1", deleting, held("example.com/keep")), "u-1", true, waiting, "example.com/keep"},
	"of a predecessor, held": {
		mywebtest.Owned("site", "u-0", deleting, held("example.com/keep")), "u-0", false, waiting, "example.com/keep"},
	"of nobody":                {mywebtest.Owned("", "", mywebtest.Ownerless), "", false, conflict, ""},
	"of nobody, being deleted": {mywebtest.Owned("", "", mywebtest.Ownerless, deleting), "", false, conflict, ""},
	"of nobody, an annotation without a UID": {
		mywebtest.Owned("", "", mywebtest.Ownerless, made("")), "", false, conflict, ""},
	"of another controller": {
		mywebtest.Owned("site", "d-1", mywebtest.OwnerKind("apps/v1", "Deployment")), "", false, conflict, ""},
	"of another controller, once made by it": {
		mywebtest.Owned("site", "d-1", mywebtest.OwnerKind("apps/v1", "Deployment"), made("u-1")), "", false, conflict, ""},
	"of a MyWeb of another group": {
		mywebtest.Owned("site", "x-1", mywebtest.OwnerKind("example.com/v1", "MyWeb")), "", false, conflict, ""},
	"of another kind of the group": {
		mywebtest.Owned("site", "x-1", mywebtest.OwnerKind("operator.k8s-summit.org/v1", "Other")), "", false, conflict, ""},
	"of a MyWeb through another version": {
		mywebtest.Owned("site", "u-1", mywebtest.OwnerKind("operator.k8s-summit.org/v2", "MyWeb")), "u-1", true, "", ""},
	"of an owner whose version makes no sense": {
		mywebtest.Owned("site", "x-1", mywebtest.OwnerKind("a/b/c", "MyWeb")), "", false, conflict, ""},
	"of another MyWeb":                {mywebtest.Owned("other", "u-2"), "u-2", false, conflict, ""},
	"of a predecessor":                {mywebtest.Owned("site", "u-0"), "u-0", false, waiting, ""},
	"of a predecessor, being deleted": {mywebtest.Owned("site", "u-0", deleting), "u-0", false, waiting, ""},
	"made by a predecessor, owned by nobody": {
		mywebtest.Owned("", "", mywebtest.Ownerless, made("u-0")), "u-0", false, conflict, "earlier MyWeb"},
	"made by it, taken over by a later one": {mywebtest.Owned("site", "u-2", made("u-1")), "u-2", false, waiting, ""},
}

func TestWhoseAnObjectIs(t *testing.T) {
	for name, test := range ownerships {
		t.Run(name, func(t *testing.T) {
			if got := Kind.UID(test.obj); got != test.owner {
				t.Errorf("it concerns %q, want %q", got, test.owner)
			}
			if got := Kind.Owns(mywebtest.New(), test.obj); got != test.mine {
				t.Errorf("belongs to this MyWeb: %v, want %v", got, test.mine)
			}
			switch got := Kind.Conflict(mywebtest.New(), "ConfigMap", test.obj); {
			case got == nil:
				if test.reason != "" {
					t.Errorf("no conflict, want %s", test.reason)
				}
			case got.Reason != test.reason || got.Transient != (test.reason == waiting && len(test.obj.Finalizers) == 0) ||
				got.RetryAfter != 0:
				t.Errorf("got %+v, want %q", got, test.reason)
			case !strings.Contains(got.Message, "ConfigMap site") || !strings.Contains(got.Message, test.message):
				t.Errorf("the message is %q, want %q in it", got.Message, test.message)
			}
		})
	}
}

func TestTheAppliedHashIsStableAndShowsALostField(t *testing.T) {
	hashOf := func(web *webv1.MyWeb, change func(*corev1ac.ConfigMapApplyConfiguration)) string {
		desired := DesiredConfigMap(web)
		change(desired)
		Kind.Own(web, &owned.Child{Desired: desired, Meta: desired.ObjectMetaApplyConfiguration})
		return desired.Annotations[Kind.Annotation()]
	}
	same := func(*corev1ac.ConfigMapApplyConfiguration) {}
	lost := func(c *corev1ac.ConfigMapApplyConfiguration) { delete(c.Labels, "app.kubernetes.io/part-of") }
	if hashOf(mywebtest.New(), same) == hashOf(mywebtest.New(), lost) {
		t.Error("a child without a label has the hash of the one with it")
	}
	if got := hashOf(mywebtest.New(), same); !strings.HasPrefix(got, "u-1/") {
		t.Errorf("the hash %q does not name its MyWeb", got)
	}
	if reported := func(w *webv1.MyWeb) { w.Generation, w.Status.ReadyReplicas = 9, 1 }; hashOf(mywebtest.New(),
		same) != hashOf(mywebtest.New(reported), same) {
		t.Error("what is no part of a child changed its hash")
	}
	first := hashOf(mywebtest.New(), same)
	for range 50 { // a map in the wrong place would show as another order
		if hashOf(mywebtest.New(), same) != first {
			t.Fatal("the same child has two hashes")
		}
	}
}
