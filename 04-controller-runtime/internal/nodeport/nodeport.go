// Package nodeport is the hardening of the node port of a MyWeb.
package nodeport

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
	"example.com/operator-workshop/04-controller-runtime/internal/hardening"
	"example.com/operator-workshop/04-controller-runtime/internal/owned"
)

// Demanded by the checks of behaviour/07 (a node port that is taken: reported, no hot loop, recovers) and by
// behaviour/05-allocated-port: the API server frees the port of a deleted Service a moment after it reported the
// deletion (kubernetes/kubernetes#73140).

const (
	// wantedNodePort is an index of the MyWebs, and heldNodePort is an index of the Services.
	wantedNodePort, heldNodePort = "wantedNodePort", "heldNodePort"
	// When the API server refuses a node port that no visible Service has, the operator tries so many times, with this
	// backoff, before it reports the port as taken: for half a second and more.
	freeingTries = 7
	firstBackoff = 5 * time.Millisecond
	lastBackoff  = 30 * time.Second
)

// Applier decorates an applier: it does not write a Service whose node port another Service has, or tries it again.
func Applier(services client.Reader, next owned.Applier) owned.Applier {
	tries := workqueue.NewTypedItemExponentialFailureRateLimiter[types.UID](firstBackoff, lastBackoff)
	return decorated{services, next, tries}
}

type decorated struct {
	services client.Reader
	next     owned.Applier
	tries    workqueue.TypedRateLimiter[types.UID]
}

// Apply implements owned.Applier.
func (a decorated) Apply(ctx context.Context, child *owned.Child) (owned.Object, error) {
	service, ok := child.Desired.(*corev1ac.ServiceApplyConfiguration)
	if !ok || service.Spec.Ports[0].NodePort == nil {
		return a.next.Apply(ctx, child)
	}
	if err := isTaken(ctx, a.services, service, *service.Spec.Ports[0].NodePort); err != nil {
		return nil, err
	}
	live, err := a.next.Apply(ctx, child)
	owner := *child.Meta.OwnerReferences[0].UID
	if !isNodePortTaken(err) {
		a.tries.Forget(owner)
		return live, err
	}
	tried, wait := a.tries.NumRequeues(owner), a.tries.When(owner)
	if tried < freeingTries {
		return nil, hardening.RequeueAfter(wait)
	}
	return nil, &owned.ConditionError{Reason: webv1.ReasonNodePortUnavailable, Message: err.Error(), RetryAfter: wait}
}

// isTaken returns a ConditionError when another Service in the cache has a node port. It does not wait until the cache
// has the Services that are being written for other MyWebs: one slow write would delay all MyWebs. If one of these
// Services takes the port, the API server refuses the port to this Service.
func isTaken(ctx context.Context, c client.Reader, service *corev1ac.ServiceApplyConfiguration, port int32) error {
	var holders corev1.ServiceList
	err := c.List(ctx, &holders, client.MatchingFields{heldNodePort: strconv.Itoa(int(port))},
		client.DisableReadYourWritesConsistency)
	if err != nil {
		return fmt.Errorf("list Services with node port %d: %w", port, err)
	}
	for _, holder := range holders.Items {
		if holder.Namespace != *service.Namespace || holder.Name != *service.Name {
			return &owned.ConditionError{Reason: webv1.ReasonNodePortUnavailable,
				Message: fmt.Sprintf("node port %d is taken by Service %s/%s", port, holder.Namespace, holder.Name)}
		}
	}
	return nil
}

// isNodePortTaken reports whether an apply was refused because another Service has the node port.
func isNodePortTaken(err error) bool {
	cause, found := apierrors.StatusCause(err, metav1.CauseTypeFieldValueInvalid)
	return found && strings.HasSuffix(cause.Field, ".nodePort") && strings.Contains(cause.Message, "already allocated")
}

// Index makes the cache find MyWebs and Services by node port.
func Index(ctx context.Context, indexer client.FieldIndexer) error {
	err := indexer.IndexField(ctx, &webv1.MyWeb{}, wantedNodePort, func(obj client.Object) []string {
		if port := obj.(*webv1.MyWeb).Spec.NodePortNumber; port != nil {
			return []string{strconv.Itoa(int(*port))}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return indexer.IndexField(ctx, &corev1.Service{}, heldNodePort, heldNodePorts)
}

// heldNodePorts returns the ports that no other Service can have while this one does.
func heldNodePorts(obj client.Object) (ports []string) {
	spec := obj.(*corev1.Service).Spec
	held := []int32{spec.HealthCheckNodePort}
	for _, port := range spec.Ports {
		held = append(held, port.NodePort)
	}
	for _, port := range held {
		if port != 0 {
			ports = append(ports, strconv.Itoa(int(port)))
		}
	}
	return ports
}

// MapToWaiting returns the MyWebs that want a node port which a Service has. On a change it is called for the old state
// of the Service, too: so a MyWeb recovers at once when its port is free. Owns does not report that: the MyWeb does not
// own the Service.
func MapToWaiting(webs client.Reader) func(context.Context, client.Object) []ctrl.Request {
	return func(ctx context.Context, service client.Object) (requests []ctrl.Request) {
		for _, port := range heldNodePorts(service) {
			var waiting webv1.MyWebList // of which only the names are read
			err := webs.List(ctx, &waiting, client.MatchingFields{wantedNodePort: port},
				client.DisableReadYourWritesConsistency, client.UnsafeDisableDeepCopy)
			if err != nil {
				log.FromContext(ctx).Error(err, "Could not list the MyWebs that want a node port", "port", port)
			}
			for i := range waiting.Items {
				requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&waiting.Items[i])})
			}
		}
		return requests
	}
}
