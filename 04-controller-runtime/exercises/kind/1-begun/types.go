// The types of Note and its operator. `make check` makes the CRD and the deep copies from them.
//
// +groupName=notes.example.com
// +versionName=v1
package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// NoteSpec is the desired state.
//
// +kubebuilder:object:generate=true
type NoteSpec struct{}

// NoteStatus is the observed state.
//
// +kubebuilder:object:generate=true
type NoteStatus struct{}

// Note becomes a ConfigMap.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
type Note struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   NoteSpec   `json:"spec,omitempty"`
	Status NoteStatus `json:"status,omitempty"`
}

// NoteList is a list of Notes.
//
// +kubebuilder:object:root=true
type NoteList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Note `json:"items"`
}

var schemeBuilder = runtime.NewSchemeBuilder(func(s *runtime.Scheme) error {
	version := schema.GroupVersion{Group: "notes.example.com", Version: "v1"}
	s.AddKnownTypes(version, &Note{}, &NoteList{})
	metav1.AddToGroupVersion(s, version)
	return nil
})

// AddToScheme adds the types to the scheme of a client or a manager.
var AddToScheme = schemeBuilder.AddToScheme
