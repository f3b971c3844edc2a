package myweb

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	webv1 "example.com/operator-workshop/06-deploy/scale/api/v1"
	"example.com/operator-workshop/06-deploy/scale/internal/owned"
)

// These are the names by which the stages use package owned.
type (
	// A Child is an object that a MyWeb owns.
	Child = owned.Child
	// A ConditionError keeps a MyWeb from being served.
	ConditionError = owned.ConditionError
	// An Object is a Kubernetes object in its Go type.
	Object = owned.Object
)

// Conflict returns why a MyWeb cannot have a child with the name of a live object, nil when it can.
func Conflict(web *webv1.MyWeb, kind string, obj metav1.Object) *ConditionError {
	return Kind.Conflict(web, kind, obj)
}

// EventsFor returns the events of a change from one status to another.
func EventsFor(old, status webv1.MyWebStatus) []owned.Event {
	return owned.Events(old.Conditions, status.Conditions)
}
