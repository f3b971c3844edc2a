// Package hardening extends the core of an operator with decorators of its reconciler, of its client and of its applier.
// It knows no kind of owner, and asks for no kind of child: a Deployment and a StatefulSet are hardened in the same way, and an
// owner has one child of each kind. A child has a Go type. Of Kubernetes' own kinds it knows three facts: an autoscaler that
// sets spec.replicas belongs on the scale of the owner (fight.go), the API server answers a duplicate node port with an
// internal error (elements.go), and package fields knows in which lists an element has a key, such as ports. Of the operator it imports only the general packages owned and fields. A comment that begins with
// "Demanded by" names the check of the lab, or the test, that fails without the code.
package hardening
