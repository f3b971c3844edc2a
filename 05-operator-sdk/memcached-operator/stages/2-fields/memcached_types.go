// +groupName=cache.example.com

// Package v1alpha1 has the types of a Memcached. In a scaffold, the marker above is in groupversion_info.go.
package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// MemcachedSpec is the cache that the user wants.
type MemcachedSpec struct {
	// size is the number of pods.
	//
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=5
	Size int32 `json:"size,omitempty"`

	// containerPort is the port on which memcached listens.
	//
	// +optional
	// +kubebuilder:default=11211
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	ContainerPort int32 `json:"containerPort,omitempty"`
}

// MemcachedStatus is what the operator observed.
type MemcachedStatus struct {
	// conditions report the state of the cache.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Memcached is a number of identical memcached servers.
type Memcached struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   MemcachedSpec   `json:"spec"`
	Status MemcachedStatus `json:"status,omitzero"`
}

// MemcachedList is a list of Memcacheds.
type MemcachedList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Memcached `json:"items"`
}
