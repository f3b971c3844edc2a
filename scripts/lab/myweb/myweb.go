// Package myweb names the resource that the checks of MyWeb operators examine.
package myweb

import "k8s.io/apimachinery/pkg/runtime/schema"

// MyWebs is the resource that every implementation handles.
var MyWebs = schema.GroupVersionResource{Group: "operator.k8s-summit.org", Version: "v1", Resource: "mywebs"}
