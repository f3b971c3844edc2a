package myweb

import (
	"encoding/json"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	webv1 "example.com/operator-workshop/03-client-go-controller/pkg/apis/myweb/v1"
)

// AnnotationApplied on a child holds the UID of the MyWeb that it was made for, and the hash of the last apply:
// "UID/hash". The hash shows that a field is not desired any more, which a comparison of the desired fields cannot
// show. The UID identifies a child that lost its owner reference.
const AnnotationApplied = "operator.k8s-summit.org/applied"

// setAppliedHash annotates the desired state of a child with its owner and its own hash, and sets Fields.
func setAppliedHash(web *webv1.MyWeb, child *Child) {
	data, err := json.Marshal(child.Desired)
	utilruntime.Must(err) // apply configurations are made of strings, numbers, maps and lists
	child.Meta.Annotations = map[string]string{AnnotationApplied: string(web.UID) + "/" + hash(data)}
	child.Fields, err = runtime.DefaultUnstructuredConverter.ToUnstructured(child.Desired)
	utilruntime.Must(err)
	delete(child.Fields, "apiVersion") // not set on objects from a typed client
	delete(child.Fields, "kind")
}

// ownerReference makes the garbage collector remove a child together with its MyWeb.
// controllerutil.SetControllerReference would add the same, but it takes an object and not an apply configuration: an
// object also holds fields that are merely empty, and an apply of it would own those too. blockOwnerDeletion is left
// out: it needs one more permission and matters only for foreground deletion.
func ownerReference(web *webv1.MyWeb) *metav1ac.OwnerReferenceApplyConfiguration {
	return metav1ac.OwnerReference().
		WithAPIVersion(webv1.SchemeGroupVersion.String()).WithKind("MyWeb").
		WithName(web.Name).WithUID(web.UID).WithController(true)
}

// IsOwnedBy reports whether a MyWeb may change an object: the MyWeb controls it, or it was made for the
// MyWeb and has no controller now. Owners are compared by UID, because a name can be used again. An object that does not
// exist has no owner.
func IsOwnedBy(obj metav1.Object, web *webv1.MyWeb) bool {
	return web.UID != "" && OwnerUID(obj) == web.UID
}

// OwnerUID returns the UID of the MyWeb that controls an object, or for which an object without a controller was made.
// It is empty when there is none.
func OwnerUID(obj metav1.Object) types.UID {
	owner := metav1.GetControllerOfNoCopy(obj)
	if owner == nil {
		uid, _, _ := strings.Cut(obj.GetAnnotations()[AnnotationApplied], "/")
		return types.UID(uid)
	}
	if strings.HasPrefix(owner.APIVersion, webv1.SchemeGroupVersion.Group+"/") && owner.Kind == "MyWeb" {
		return owner.UID
	}
	return ""
}
