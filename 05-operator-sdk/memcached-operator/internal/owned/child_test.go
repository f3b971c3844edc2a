package owned

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
)

// The owners in these tests are PodDisruptionBudgets, which every API server knows: this package works with any
// kind.
var kind = Kind{policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget")}

func owner(uid types.UID) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "site", UID: uid}}
}

// live returns a Deployment with an owner reference to a resource, changed.
func live(name string, uid types.UID, change ...func(*appsv1.Deployment)) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "site", Namespace: "default", UID: "child",
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "policy/v1", Kind: "PodDisruptionBudget", Name: name, UID: uid, Controller: new(true)}}}}
	for _, f := range change {
		f(d)
	}
	return d
}

func made(uid string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) {
		d.Annotations = map[string]string{"policy/applied": uid + "/0123456789abcdef"}
	}
}

func ownerless(d *appsv1.Deployment) { d.OwnerReferences = nil }

func held(d *appsv1.Deployment) { d.Finalizers = []string{"example.com/keep"} }

func foreground(d *appsv1.Deployment) { d.Finalizers = []string{metav1.FinalizerDeleteDependents} }

func deleting(d *appsv1.Deployment) { d.DeletionTimestamp = new(metav1.Now()) }

func uncontrolled(d *appsv1.Deployment) { d.OwnerReferences[0].Controller = nil }

func ownerKind(apiVersion, kind string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) {
		d.OwnerReferences[0].APIVersion, d.OwnerReferences[0].Kind = apiVersion, kind
	}
}

const conflict, waiting = ReasonResourceConflict, ReasonWaitingForDeletion

type ownership struct {
	obj     *appsv1.Deployment
	owner   types.UID // of this kind
	owned   bool
	reason  string // of the conflict
	held    bool   // by a finalizer
	message string
}

var ownerships = map[string]ownership{
	"its own child":                           {live("site", "u-1"), "u-1", true, "", false, ""},
	"its own, annotated":                      {live("site", "u-1", made("u-1")), "u-1", true, "", false, ""},
	"its own, the owner reference taken away": {live("", "", ownerless, made("u-1")), "u-1", true, "", false, ""},
	"its own, being deleted":                  {live("site", "u-1", deleting), "u-1", true, waiting, false, ""},
	"stripped of its owner, being deleted": {
		live("", "", ownerless, made("u-1"), deleting), "u-1", true, waiting, false, ""},
	"owned besides, and controlled by none": {live("site", "u-1", uncontrolled), "", false, conflict, false, ""},
	"owned besides, but made by it":         {live("site", "u-1", made("u-1"), uncontrolled), "u-1", true, "", false, ""},
	"without an owner":                      {live("", "", ownerless), "", false, conflict, false, ""},
	"without an owner, being deleted":       {live("", "", ownerless, deleting), "", false, conflict, false, ""},
	"without an owner, an annotation without a UID": {
		live("", "", ownerless, made("")), "", false, conflict, false, ""},
	"of another controller": {
		live("site", "d-1", ownerKind("apps/v1", "Deployment")), "", false, conflict, false, ""},
	"of another controller, once made by it": {
		live("site", "d-1", ownerKind("apps/v1", "Deployment"), made("u-1")), "", false, conflict, false, ""},
	"of the same kind of another group": {
		live("site", "x-1", ownerKind("example.com/v1", "PodDisruptionBudget")), "", false, conflict, false, ""},
	"of another kind of the group": {live("site", "x-1", ownerKind("policy/v1", "Other")), "", false, conflict, false, ""},
	"of its owner through another version": {
		live("site", "u-1", ownerKind("policy/v2", "PodDisruptionBudget")), "u-1", true, "", false, ""},
	"of an owner whose version makes no sense": {
		live("site", "x-1", ownerKind("a/b/c", "PodDisruptionBudget")), "", false, conflict, false, ""},
	"its own, the owner's kind edited": {live("site", "u-1", ownerKind("policy/v1", "Other")), "", true, "", false, ""},
	"of another owner":                 {live("other", "u-2"), "u-2", false, conflict, false, ""},
	"of a predecessor":                 {live("site", "u-0"), "u-0", false, waiting, false, ""},
	"of a predecessor, being deleted":  {live("site", "u-0", deleting), "u-0", false, waiting, false, ""},
	"an orphan of a predecessor": {live("", "", ownerless, made("u-0")), "u-0", false, conflict, false,
		"left behind by an earlier PodDisruptionBudget"},
	"its own, held by a finalizer": {live("site", "u-1", deleting, held), "u-1", true, waiting, true,
		"the programs that set example.com/keep must remove them"},
	"a predecessor's, held by a finalizer": {
		live("site", "u-0", deleting, held), "u-0", false, waiting, true, "example.com/keep"},
	"its own, held by the garbage collector": {
		live("site", "u-1", deleting, foreground), "u-1", true, waiting, false, "will be made again"},
	"made by it, taken over by a later one": {live("site", "u-2", made("u-1")), "u-2", false, waiting, false, ""},
}

func TestWhoseAnObjectIs(t *testing.T) {
	for name, test := range ownerships {
		t.Run(name, func(t *testing.T) {
			if got := kind.UID(test.obj); got != test.owner {
				t.Errorf("its owner is %q, want %q", got, test.owner)
			}
			owned, got := kind.conflict(owner("u-1"), test.obj, "Deployment site")
			if owned != test.owned {
				t.Errorf("it is owned: %v, want %v", owned, test.owned)
			}
			switch {
			case got == nil:
				if test.reason != "" {
					t.Errorf("there is no conflict, want %s", test.reason)
				}
			case got.Reason != test.reason || got.Transient != (test.reason == waiting && !test.held) || got.Retry:
				t.Errorf("got %+v, want %q", got, test.reason)
			case !strings.Contains(got.Message, "Deployment site") || !strings.Contains(got.Message, test.message):
				t.Errorf("the message is %q, want %q in it", got.Message, test.message)
			}
		})
	}
}

func replicas(n int32) func(*appsv1ac.DeploymentApplyConfiguration) {
	return func(d *appsv1ac.DeploymentApplyConfiguration) { d.Spec.WithReplicas(n) }
}

// deployment returns a child with a desired state, changed.
func deployment(change ...func(*appsv1ac.DeploymentApplyConfiguration)) *Child {
	labels := map[string]string{"app": "site"}
	d := appsv1ac.Deployment("site", "default").WithLabels(labels).WithSpec(appsv1ac.DeploymentSpec().
		WithReplicas(1).WithSelector(metav1ac.LabelSelector().WithMatchLabels(labels)).
		WithTemplate(corev1ac.PodTemplateSpec().WithLabels(labels).WithSpec(corev1ac.PodSpec().WithContainers(
			corev1ac.Container().WithName("c").WithImage("i").WithArgs("-a").
				WithPorts(corev1ac.ContainerPort().WithName("p").WithContainerPort(80).WithProtocol("TCP"))))))
	for _, f := range change {
		f(d)
	}
	return Deployment(d)
}

func TestTheAppliedHashIsStableAndShowsALostField(t *testing.T) {
	hash := func(change func(*appsv1ac.DeploymentApplyConfiguration)) string {
		child := deployment(change)
		var applied string
		for range 2 { // a child that is applied twice
			child.setOwner(kind, owner("u-1"))
			applied = child.meta.Annotations["policy/applied"]
		}
		if len(child.meta.OwnerReferences) != 1 {
			t.Errorf("annotated twice: %v, %v", child.meta.Annotations, child.meta.OwnerReferences)
		}
		return applied
	}
	first := hash(func(*appsv1ac.DeploymentApplyConfiguration) {})
	if lost := hash(func(d *appsv1ac.DeploymentApplyConfiguration) { delete(d.Labels, "app") }); lost == first {
		t.Error("a child without a label has the hash of the one with it")
	}
	if !strings.HasPrefix(first, "u-1/") {
		t.Errorf("%q does not name the owner", first)
	}
	for range 50 { // the order of an unsorted map would change the hash
		if hash(func(*appsv1ac.DeploymentApplyConfiguration) {}) != first {
			t.Fatal("the same child has two hashes")
		}
	}
}
