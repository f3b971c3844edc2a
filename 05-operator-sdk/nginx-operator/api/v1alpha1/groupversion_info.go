// Package v1alpha1 is the API group proxy.example.com, version v1alpha1.
//
// +kubebuilder:object:generate=true
// +groupName=proxy.example.com
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	// GroupVersion is the group and the version of the types in this package.
	GroupVersion = schema.GroupVersion{Group: "proxy.example.com", Version: "v1alpha1"}
	// SchemeBuilder collects the functions that add types to a scheme. The scaffold still writes
	// controller-runtime's scheme.Builder here, which is deprecated.
	SchemeBuilder = runtime.NewSchemeBuilder(func(scheme *runtime.Scheme) error {
		metav1.AddToGroupVersion(scheme, GroupVersion)
		return nil
	})
	// AddToScheme adds the types in this package to a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)
