package controller

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	webv1 "example.com/operator-workshop/03-client-go-controller/pkg/apis/myweb/v1"
)

// owned returns a ConfigMap with an owner reference to a MyWeb, changed.
func owned(name string, uid types.UID, change ...func(*corev1.ConfigMap)) *corev1.ConfigMap {
	c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "site", Namespace: "default",
		OwnerReferences: []metav1.OwnerReference{{APIVersion: webv1.SchemeGroupVersion.String(), Kind: "MyWeb",
			Name: name, UID: uid, Controller: new(true)}}}}
	for _, f := range change {
		f(c)
	}
	return c
}

func made(uid string) func(*corev1.ConfigMap) {
	return func(c *corev1.ConfigMap) {
		c.Annotations = map[string]string{annotationApplied: uid + "/0123456789abcdef"}
	}
}

func ownerless(c *corev1.ConfigMap) { c.OwnerReferences = nil }

func deleting(c *corev1.ConfigMap) { c.DeletionTimestamp = &noon }

func ownerKind(apiVersion, kind string) func(*corev1.ConfigMap) {
	return func(c *corev1.ConfigMap) {
		c.OwnerReferences[0].APIVersion, c.OwnerReferences[0].Kind = apiVersion, kind
	}
}

func TestWhoseAnObjectIs(t *testing.T) {
	const conflict, waiting = webv1.ReasonResourceConflict, webv1.ReasonWaitingForDeletion
	for name, test := range map[string]struct {
		obj    *corev1.ConfigMap
		owner  types.UID // the MyWeb that it concerns
		mine   bool
		reason string // why it is in the way
	}{
		"its own child":                            {owned("site", "u-1"), "u-1", true, ""},
		"its own, annotated":                       {owned("site", "u-1", made("u-1")), "u-1", true, ""},
		"its own, the owner reference taken away":  {owned("", "", ownerless, made("u-1")), "u-1", true, ""},
		"its own, being deleted":                   {owned("site", "u-1", deleting), "u-1", true, waiting},
		"stripped of its owner, being deleted":     {owned("", "", ownerless, made("u-1"), deleting), "u-1", true, waiting},
		"owned besides, and controlled by none":    {owned("site", "u-1", func(c *corev1.ConfigMap) { c.OwnerReferences[0].Controller = nil }), "", false, conflict},
		"owned besides, but made by it":            {owned("site", "u-1", made("u-1"), func(c *corev1.ConfigMap) { c.OwnerReferences[0].Controller = nil }), "u-1", true, ""},
		"of nobody":                                {owned("", "", ownerless), "", false, conflict},
		"of nobody, being deleted":                 {owned("", "", ownerless, deleting), "", false, conflict},
		"of nobody, an annotation without a UID":   {owned("", "", ownerless, made("")), "", false, conflict},
		"of another controller":                    {owned("site", "d-1", ownerKind("apps/v1", "Deployment")), "", false, conflict},
		"of another controller, once made by it":   {owned("site", "d-1", ownerKind("apps/v1", "Deployment"), made("u-1")), "", false, conflict},
		"of a MyWeb of another group":              {owned("site", "x-1", ownerKind("example.com/v1", "MyWeb")), "", false, conflict},
		"of another kind of the group":             {owned("site", "x-1", ownerKind("operator.k8s-summit.org/v1", "Other")), "", false, conflict},
		"of a MyWeb through another version":       {owned("site", "u-1", ownerKind("operator.k8s-summit.org/v2", "MyWeb")), "u-1", true, ""},
		"of an owner whose version makes no sense": {owned("site", "x-1", ownerKind("a/b/c", "MyWeb")), "", false, conflict},
		"of another MyWeb":                         {owned("other", "u-2"), "u-2", false, conflict},
		"of a predecessor":                         {owned("site", "u-0"), "u-0", false, waiting},
		"of a predecessor, being deleted":          {owned("site", "u-0", deleting), "u-0", false, waiting},
		"made by a predecessor, owned by nobody":   {owned("", "", ownerless, made("u-0")), "u-0", false, conflict},
		"made by it, taken over by a later one":    {owned("site", "u-2", made("u-1")), "u-2", false, waiting},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ownerUID(test.obj); got != test.owner {
				t.Errorf("it concerns %q, want %q", got, test.owner)
			}
			if got := belongsToMyWeb(test.obj); got != (test.owner != "") {
				t.Errorf("belongs to a MyWeb: %v", got)
			}
			if got := belongsTo(test.obj, myWeb()); got != test.mine {
				t.Errorf("belongs to this MyWeb: %v, want %v", got, test.mine)
			}
			switch got := inTheWay(myWeb(), "ConfigMap", test.obj); {
			case got == nil:
				if test.reason != "" {
					t.Errorf("it is not in the way, want %s", test.reason)
				}
			case got.reason != test.reason || got.passing != (test.reason == waiting) || got.unwatched:
				t.Errorf("in the way: %+v, want %q", got, test.reason)
			case !strings.Contains(got.message, "ConfigMap site"):
				t.Errorf("the message does not name the object: %q", got.message)
			}
		})
	}
}
