// Package v2 is the API of MyWeb, with the names that its users wanted.
//
// +kubebuilder:object:generate=true
// +groupName=operator.k8s-summit.org
package v2
