package controller

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"example.com/operator-workshop/03-client-go-controller/internal/myweb"
	webv1 "example.com/operator-workshop/03-client-go-controller/pkg/apis/myweb/v1"
)

// Demanded by the checks of behaviour/07 (a node port that is taken: reported, no hot loop, recovers). For a
// Service that is created again, demanded by behaviour/05-deleted-service and behaviour/05-allocated-port.

// checkNodePort returns a ConditionError when another Service holds the port that the Service of the MyWeb names.
func (c *Controller) checkNodePort(web *webv1.MyWeb, child *myweb.Child) error {
	service, ok := child.Desired.(*corev1ac.ServiceApplyConfiguration)
	if !ok || service.Spec.Ports[0].NodePort == nil {
		return nil
	}
	port := *service.Spec.Ports[0].NodePort
	if holder := c.nodePortHolder(web, port); holder != nil {
		return &myweb.ConditionError{Reason: webv1.ReasonNodePortUnavailable,
			Message: fmt.Sprintf("node port %d is taken by Service %s/%s", port, holder.Namespace, holder.Name)}
	}
	return nil
}

// nodePortHolder returns the Service that has a node port; nil when the port is free or the MyWeb has it itself.
func (c *Controller) nodePortHolder(web *webv1.MyWeb, port int32) *corev1.Service {
	for _, obj := range c.indexed("Service", byNodePort, strconv.Itoa(int(port))) {
		if service := obj.(*corev1.Service); !myweb.Kind.Owns(web, service) || service.Name != web.Name {
			return service
		}
	}
	return nil
}

// freeingTries is how often the controller requests a node port that no Service in the cache has, before it reports
// the port as taken: for half a second and more, with backoff.
const freeingTries = 7

// errNodePortNotFree is the refusal of such a port.
var errNodePortNotFree = errors.New("the node port is not free yet")

// isNodePortTaken reports whether an apply was refused because another Service has the node port.
func isNodePortTaken(err error) bool {
	cause, found := apierrors.StatusCause(err, metav1.CauseTypeFieldValueInvalid)
	return found && strings.HasSuffix(cause.Field, ".nodePort") && strings.Contains(cause.Message, "already allocated")
}

// nodePortRefused returns the error of such a refusal. The API server frees the port of a deleted Service a moment after
// it reported the deletion. So it refuses a Service that is created again at once, though the port is not taken.
func (c *Controller) nodePortRefused(web *webv1.MyWeb, err error) error {
	if c.workqueue.NumRequeues(nameOf(web)) < freeingTries {
		return fmt.Errorf("%w: %w", errNodePortNotFree, err)
	}
	reported := &myweb.ConditionError{Reason: webv1.ReasonNodePortUnavailable, Message: err.Error()}
	return fmt.Errorf("%w: %w", errNodePortNotFree, reported) // no watch reports its end: tried again with backoff
}
