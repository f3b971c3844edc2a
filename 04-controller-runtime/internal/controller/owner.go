package controller

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
)

// annotationApplied on a child says for which MyWeb it was made, and the hash of what was applied last:
// "UID/hash". The hash shows that a field is no longer wanted, which comparing the wanted fields cannot.
// The UID lets a child be known whose owner reference was taken away.
const annotationApplied = "operator.k8s-summit.org/applied"

// belongsTo reports whether a MyWeb may change an object: it controls it, or made it and nobody controls
// it now. Owners are told apart by their UIDs: a name may have been given anew.
func belongsTo(obj metav1.Object, web *webv1.MyWeb) bool {
	if owner := metav1.GetControllerOfNoCopy(obj); owner != nil {
		return owner.UID == web.UID
	}
	return madeFor(obj) == web.UID
}

// belongsToMyWeb reports whether any MyWeb, of now or before, may have made an object.
func belongsToMyWeb(obj metav1.Object) bool {
	return ownerUID(obj) != ""
}

// ownerUID is the UID of the MyWeb that controls an object or made it, empty when none did.
func ownerUID(obj metav1.Object) types.UID {
	owner := metav1.GetControllerOfNoCopy(obj)
	if owner == nil {
		return madeFor(obj)
	}
	if group, err := schema.ParseGroupVersion(owner.APIVersion); err != nil || group.Group != webv1.SchemeGroupVersion.Group || owner.Kind != "MyWeb" {
		return ""
	}
	return owner.UID
}

func madeFor(obj metav1.Object) types.UID {
	uid, _, _ := strings.Cut(obj.GetAnnotations()[annotationApplied], "/")
	return types.UID(uid)
}

// inTheWay returns what keeps a MyWeb from using the name of an object as a child's, nil when nothing
// does.
func inTheWay(web *webv1.MyWeb, kind string, obj metav1.Object) *obstacle {
	owner := metav1.GetControllerOfNoCopy(obj)
	switch {
	case belongsTo(obj, web) && obj.GetDeletionTimestamp() != nil:
		return &obstacle{reason: webv1.ReasonWaitingForDeletion, passing: true,
			message: kind + " " + obj.GetName() + " is being deleted and will be made again"}
	case belongsTo(obj, web):
		return nil
	case owner != nil && ownerUID(obj) == owner.UID && owner.Name == web.Name: // two cannot have one name
		return &obstacle{reason: webv1.ReasonWaitingForDeletion, passing: true,
			message: kind + " " + obj.GetName() + " is left of a deleted MyWeb of this name: the garbage collector will remove it"}
	default:
		return &obstacle{reason: webv1.ReasonResourceConflict,
			message: kind + " " + obj.GetName() + " exists and is not controlled by this MyWeb: delete or rename it"}
	}
}
