package myweb

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	"example.com/operator-workshop/03-client-go-controller/internal/fields"
)

// An Object is a Kubernetes object in its Go type.
type Object interface {
	runtime.Object
	metav1.Object
}

// A Child is an object that a MyWeb owns: its desired state, and its live state.
type Child struct {
	Kind string
	// Desired is an apply configuration. The operator owns the fields that it names, and no others.
	Desired runtime.ApplyConfiguration
	// Meta is the metadata of Desired.
	Meta *metav1ac.ObjectMetaApplyConfiguration
	// Fields is Desired as a tree of fields, to be compared with the live state.
	Fields map[string]any
	// Live is the child in the cluster. It is empty, without a UID, while the MyWeb owns none.
	Live Object
}

// LiveOf returns the live Deployment and Service among the children, which are in the order of DesiredChildren.
func LiveOf(children []*Child) (*appsv1.Deployment, *corev1.Service) {
	return children[1].Live.(*appsv1.Deployment), children[2].Live.(*corev1.Service)
}

// IsApplied reports whether the last apply was of this desired state, even if another client changed the child since.
// It is false for a missing child, and for a child of an older spec.
func (c *Child) IsApplied() bool {
	return c.Live.GetAnnotations()[AnnotationApplied] == c.Meta.Annotations[AnnotationApplied]
}

// Difference returns the path of a field whose live value is not the desired value, "" when the child is up to date.
// All other fields belong to others: defaults of the API server, labels, sidecars.
func (c *Child) Difference() string {
	live, err := runtime.DefaultUnstructuredConverter.ToUnstructured(c.Live)
	utilruntime.Must(err)
	for _, first := range fields.Differences(c.Fields, live) {
		return first.Path
	}
	return ""
}
