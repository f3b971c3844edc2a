// Package v1 is the API of MyWeb: a website of one page.
//
// +k8s:deepcopy-gen=package
// +groupName=operator.k8s-summit.org
package v1
