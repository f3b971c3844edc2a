// Two markers for the whole package:
//   - k8s:deepcopy-gen=package asks deepcopy-gen for deep copies of every type in it.
//   - groupName is the group of the API; its version is the name of the package. For register-gen this marker
//     is also the request to register the types.

// Package v1 is the API of MyWeb: a website of one page.
//
// +k8s:deepcopy-gen=package
// +groupName=operator.k8s-summit.org
package v1
