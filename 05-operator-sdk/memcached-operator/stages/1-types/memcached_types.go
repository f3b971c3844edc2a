// +groupName=cache.example.com

// Package v1alpha1 has the types of a Memcached. In a scaffold, the marker above is in groupversion_info.go.
package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// MemcachedSpec is the cache that the user wants.
type MemcachedSpec struct {
	// size is the number of pods.
	Size int32 `json:"size"`

	// containerPort is the port on which memcached listens.
	ContainerPort int32 `json:"containerPort"`
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
