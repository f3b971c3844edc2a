// Package v1 is the API group databases.test.io, version v1.
//
// +kubebuilder:object:generate=true
// +groupName=databases.test.io
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	// GroupVersion is the group and the version of the types in this package.
	GroupVersion = schema.GroupVersion{Group: "databases.test.io", Version: "v1"}
	// SchemeBuilder collects the functions that add types to a scheme. The scaffold still writes
	// controller-runtime's scheme.Builder here, which is deprecated.
	SchemeBuilder = runtime.NewSchemeBuilder(func(scheme *runtime.Scheme) error {
		metav1.AddToGroupVersion(scheme, GroupVersion)
		return nil
	})
	// AddToScheme adds the types in this package to a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)
