package owned

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// live returns a Deployment with an owner reference to a resource, changed.
func live(name string, uid types.UID, change ...func(*appsv1.Deployment)) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "site", Namespace: "default",
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "policy/v1", Kind: "PodDisruptionBudget", Name: name, UID: uid, Controller: new(true)}}}}
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

func deleting(d *appsv1.Deployment) { d.DeletionTimestamp = &noon }

func uncontrolled(d *appsv1.Deployment) { d.OwnerReferences[0].Controller = nil }

func ownerKind(apiVersion, kind string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) {
		d.OwnerReferences[0].APIVersion, d.OwnerReferences[0].Kind = apiVersion, kind
	}
}

func TestWhoseAnObjectIs(t *testing.T) {
	const conflict, waiting = ReasonResourceConflict, ReasonWaitingForDeletion
	for name, test := range map[string]struct {
		obj    *appsv1.Deployment
		owner  types.UID // the owner of this kind that it concerns
		mine   bool
		reason string // why it is in the way
	}{
		"its own child":                            {live("site", "u-1"), "u-1", true, ""},
		"its own, annotated":                       {live("site", "u-1", made("u-1")), "u-1", true, ""},
		"its own, the owner reference taken away":  {live("", "", ownerless, made("u-1")), "u-1", true, ""},
		"its own, being deleted":                   {live("site", "u-1", deleting), "u-1", true, waiting},
		"stripped of its owner, being deleted":     {live("", "", ownerless, made("u-1"), deleting), "u-1", true, waiting},
		"owned besides, and controlled by none":    {live("site", "u-1", uncontrolled), "", false, conflict},
		"owned besides, but made by it":            {live("site", "u-1", made("u-1"), uncontrolled), "u-1", true, ""},
		"of nobody":                                {live("", "", ownerless), "", false, conflict},
		"of nobody, being deleted":                 {live("", "", ownerless, deleting), "", false, conflict},
		"of nobody, an annotation without a UID":   {live("", "", ownerless, made("")), "", false, conflict},
		"of another controller":                    {live("site", "d-1", ownerKind("apps/v1", "Deployment")), "", false, conflict},
		"of another controller, once made by it":   {live("site", "d-1", ownerKind("apps/v1", "Deployment"), made("u-1")), "", false, conflict},
		"of the same kind of another group":        {live("site", "x-1", ownerKind("example.com/v1", "PodDisruptionBudget")), "", false, conflict},
		"of another kind of the group":             {live("site", "x-1", ownerKind("policy/v1", "Other")), "", false, conflict},
		"of its owner through another version":     {live("site", "u-1", ownerKind("policy/v2", "PodDisruptionBudget")), "u-1", true, ""},
		"of an owner whose version makes no sense": {live("site", "x-1", ownerKind("a/b/c", "PodDisruptionBudget")), "", false, conflict},
		"of another owner":                         {live("other", "u-2"), "u-2", false, conflict},
		"of a predecessor":                         {live("site", "u-0"), "u-0", false, waiting},
		"of a predecessor, being deleted":          {live("site", "u-0", deleting), "u-0", false, waiting},
		"made by a predecessor, owned by nobody":   {live("", "", ownerless, made("u-0")), "u-0", false, conflict},
		"made by it, taken over by a later one":    {live("site", "u-2", made("u-1")), "u-2", false, waiting},
	} {
		t.Run(name, func(t *testing.T) {
			k, child := keeper(), pods()
			child.Live = test.obj
			if got := ownerUID(k.kind, test.obj); got != test.owner {
				t.Errorf("it concerns %q, want %q", got, test.owner)
			}
			if got := OfKind(k.kind, test.obj); got != (test.owner != "") {
				t.Errorf("it is of an owner of this kind: %v", got)
			}
			if got := k.Belongs(test.obj, budget()); got != test.mine {
				t.Errorf("it belongs to this one: %v, want %v", got, test.mine)
			}
			if found := k.Pods(budget(), child); (found == test.obj) != test.mine || found == nil {
				t.Errorf("Pods are %v", found)
			}
			switch got := k.inTheWay(budget(), child); {
			case got == nil:
				if test.reason != "" {
					t.Errorf("it is not in the way, want %s", test.reason)
				}
			case got.Reason != test.reason || got.Passing != (test.reason == waiting) || got.Unwatched:
				t.Errorf("in the way: %+v, want %q", got, test.reason)
			case !strings.Contains(got.Message, "Deployment site"):
				t.Errorf("the message does not name the object: %q", got.Message)
			}
		})
	}
}
