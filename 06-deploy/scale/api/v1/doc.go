// Package v1 is the API of MyWeb: a website of one page.
//
// +kubebuilder:object:generate=true
// +groupName=operator.k8s-summit.org
package v1
