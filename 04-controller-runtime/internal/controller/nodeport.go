package controller

import (
	"context"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
	"example.com/operator-workshop/04-controller-runtime/internal/hardening"
	"example.com/operator-workshop/04-controller-runtime/internal/myweb"
)

// Demanded by the checks of behaviour/07 (a node port that is taken: reported, no hot loop, recovers) and by
// fault/12-ports-swapped.

// chooseNodePort lets a Service that must be made again ask for the port that the MyWeb was served on. It
// returns a ConditionError when another Service has the port that the MyWeb asks for.
func (r *Reconciler) chooseNodePort(ctx context.Context, web *webv1.MyWeb, child *myweb.Child) error {
	service, ok := child.Desired.(*corev1ac.ServiceApplyConfiguration)
	if !ok {
		return nil
	}
	port := &service.Spec.Ports[0]
	asked := port.NodePort
	if asked == nil && child.Live.GetUID() == "" && web.Status.NodePort != 0 && r.mayBecomeFree(web) {
		asked = new(web.Status.NodePort)
	}
	if asked == nil {
		return nil
	}
	holder, err := r.nodePortHolder(ctx, web, *asked)
	if err == nil && holder == nil {
		port.NodePort = asked
	}
	if err != nil || holder == nil || port.NodePort == nil {
		return err
	}
	message := r.nodePortMessage(ctx, web, *asked, holder)
	return &myweb.ConditionError{Reason: webv1.ReasonNodePortUnavailable, Message: message}
}

// nodePortHolder is the Service that has a node port, nil when it is free or the MyWeb's own. It does not
// wait until the cache has the Services that are being written for other MyWebs, or one slow write would
// delay all: should one of them take the port, the API server refuses it to this one.
func (r *Reconciler) nodePortHolder(ctx context.Context, web *webv1.MyWeb, port int32) (*corev1.Service, error) {
	var found corev1.ServiceList
	err := r.List(ctx, &found, client.MatchingFields{byNodePort: strconv.Itoa(int(port))},
		client.DisableReadYourWritesConsistency)
	if err != nil {
		return nil, fmt.Errorf("list Services with node port %d: %w", port, err)
	}
	for i := range found.Items {
		if service := &found.Items[i]; !myweb.IsOwnedBy(service, web) || service.Name != web.Name {
			return service, nil
		}
	}
	return nil, nil
}

// nodePortMessage names who has a node port. Two MyWebs that swap theirs wait for each other: neither Service
// can take the port of the other, so a user must help.
func (r *Reconciler) nodePortMessage(ctx context.Context, web *webv1.MyWeb, port int32, holder *corev1.Service) string {
	message := fmt.Sprintf("node port %d is taken by Service %s/%s", port, holder.Namespace, holder.Name)
	other := &webv1.MyWeb{}
	err := r.Get(ctx, client.ObjectKeyFromObject(holder), other, client.DisableReadYourWritesConsistency)
	asked := ptr.Deref(other.Spec.NodePortNumber, 0)
	if err == nil && myweb.IsOwnedBy(holder, other) && asked != 0 && asked == web.Status.NodePort {
		message += fmt.Sprintf(", and MyWeb %s/%s waits for node port %d of this MyWeb: give one of the two a third "+
			"port first", other.Namespace, other.Name, asked)
	}
	return message
}

// freeingTries are how often a node port is asked for that no Service is seen to have, before it is reported
// as taken: for half a second and more, with backoff.
const freeingTries = 7

// mayBecomeFree reports whether to ask once more for a node port that the API server refused, though no
// Service is seen to have it. The API server frees the port of a deleted Service a moment after it reported
// the deletion: whoever makes a Service again at once is refused, and nothing is wrong.
func (r *Reconciler) mayBecomeFree(web *webv1.MyWeb) bool {
	return r.backoff.NumRequeues(requestFor(web)) < freeingTries
}

func (r *Reconciler) nodePortRefused(web *webv1.MyWeb, err error) error {
	if r.mayBecomeFree(web) {
		return hardening.RequeueAfter(r.backoff.When(requestFor(web)))
	}
	return &myweb.ConditionError{Reason: webv1.ReasonNodePortUnavailable, Message: err.Error(), Retry: true}
}

func requestFor(web *webv1.MyWeb) ctrl.Request {
	return ctrl.Request{NamespacedName: client.ObjectKeyFromObject(web)}
}

// byNodePort is an index of the MyWebs that ask for a node port, and of the Services that have one.
const byNodePort = "nodePort"

// askedNodePort is the node port that a MyWeb asks for.
func askedNodePort(obj client.Object) []string {
	if port := obj.(*webv1.MyWeb).Spec.NodePortNumber; port != nil {
		return []string{strconv.Itoa(int(*port))}
	}
	return nil
}

// nodePorts indexes the objects that have a node port.
func nodePorts(obj client.Object) []string { return myweb.NodePorts(obj) }
