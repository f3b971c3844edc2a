package controller

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	webv1 "example.com/operator-workshop/03-client-go-controller/pkg/apis/myweb/v1"
)

// A kind is how children of one kind are read, from the cache, and written, to the API server.
type kind struct {
	store cache.Store
	apply func(ctx context.Context, want runtime.ApplyConfiguration, namespace string) (object, error)
	patch func(ctx context.Context, obj object, data []byte) (object, error)
}

// A kindClient is the part of a typed client that a kind needs. T is its type, W its apply configuration.
type kindClient[T, W any] interface {
	Apply(ctx context.Context, want W, opts metav1.ApplyOptions) (T, error)
	Patch(ctx context.Context, name string, pt types.PatchType, data []byte, opts metav1.PatchOptions, subresources ...string) (T, error)
}

func kindOf[T object, W any, C kindClient[T, W]](client func(namespace string) C, store cache.Store) kind {
	return kind{
		store: store,
		apply: func(ctx context.Context, want runtime.ApplyConfiguration, namespace string) (object, error) {
			return client(namespace).Apply(ctx, any(want).(W), metav1.ApplyOptions{FieldManager: fieldOwner, Force: true})
		},
		patch: func(ctx context.Context, obj object, data []byte) (object, error) {
			return client(obj.GetNamespace()).Patch(ctx, obj.GetName(), types.MergePatchType, data, metav1.PatchOptions{FieldManager: fieldOwner})
		},
	}
}

// look reads the children as they are from the caches. It returns an obstacle when one of them has its
// name, but is not the MyWeb's.
func (c *Controller) look(web *webv1.MyWeb, all children) error {
	var found *obstacle
	for _, child := range all { // all of them, also behind an obstacle: status tells of the others
		obj, exists, err := c.kinds[child.kind].store.GetByKey(web.Namespace + "/" + web.Name)
		if err != nil {
			return fmt.Errorf("get %s %s/%s: %w", child.kind, web.Namespace, web.Name, err)
		}
		if !exists {
			continue
		}
		child.live = obj.(object)
		if what := inTheWay(web, child.kind, child.live); what != nil && (found == nil || found.passing) {
			found = what
		}
	}
	if found != nil {
		return *found
	}
	return nil
}

// apply writes the children that are not as they should be, in order, each with what the API server
// answers as its new live state.
func (c *Controller) apply(ctx context.Context, web *webv1.MyWeb, all children) error {
	for _, child := range all {
		wanted, err := sign(web, child)
		if err != nil {
			return err
		}
		same, err := covers(child.live, wanted)
		if err != nil {
			return err
		}
		if same {
			continue
		}
		restoring := restores(web, child)
		if restoring {
			if wait := c.restored.wait(nameOf(web), c.clock.Now()); wait > 0 {
				return later(wait)
			}
		}
		if service, ok := child.want.(*corev1ac.ServiceApplyConfiguration); ok {
			if err := c.choosePort(web, child.live, &service.Spec.Ports[0]); err != nil {
				return err
			}
		}
		if err := c.write(ctx, web, child, wanted); err != nil {
			return err
		}
		if restoring { // what was refused is no fight, and has its own pauses
			c.restored.took(nameOf(web), c.clock.Now())
		}
		klog.FromContext(ctx).Info("Applied child", "kind", child.kind)
		if same, err := covers(child.live, wanted); err != nil || !same {
			return errors.Join(err, fmt.Errorf("apply %s %s/%s: the API server accepted it, and something there "+
				"(a webhook?) changed it at once", child.kind, web.Namespace, web.Name))
		}
	}
	return nil
}

// later is returned instead of doing something now: it may be done after this time.
type later time.Duration

func (l later) Error() string { return "not before " + time.Duration(l).String() }

// restores reports whether to write a child means to undo what somebody else did, and not to follow a
// changed MyWeb.
func restores(web *webv1.MyWeb, c *child) bool {
	if c.live == nil {
		return web.Status.ObservedGeneration == web.Generation // it was there before
	}
	return c.live.GetAnnotations()[annotationApplied] == c.meta.Annotations[annotationApplied]
}

// choosePort lets a Service that has to be made again ask for the port that the MyWeb was served on. It
// returns an obstacle when another Service holds the port that the MyWeb asks for.
func (c *Controller) choosePort(web *webv1.MyWeb, live object, port *corev1ac.ServicePortApplyConfiguration) error {
	if port.NodePort == nil && live == nil && web.Status.NodePort != 0 &&
		c.holder(web, web.Status.NodePort) == "" && c.portMayGetFree(web) {
		port.NodePort = new(web.Status.NodePort)
	}
	if port.NodePort == nil {
		return nil
	}
	if holder := c.holder(web, *port.NodePort); holder != "" {
		return obstacle{reason: webv1.ReasonNodePortUnavailable,
			message: fmt.Sprintf("node port %d is taken by Service %s", *port.NodePort, holder)}
	}
	return nil
}

// freeingTries are how often a node port is asked for that nobody is seen to hold, before it is told to be
// taken: for half a second and more, with growing pauses.
const freeingTries = 7

// errFreeing is that the API server refused a node port which nobody is seen to hold.
var errFreeing = errors.New("the node port may get free")

// portMayGetFree reports whether to ask once more for a node port that the API server refused, though nobody
// is seen to hold it. It frees the port of a deleted Service a moment after it told of the deletion: who
// makes a Service again at once, or a MyWeb of the same name, is refused, and nothing is wrong.
func (c *Controller) portMayGetFree(web *webv1.MyWeb) bool {
	return c.queue.NumRequeues(nameOf(web)) < freeingTries
}

// holder is the Service that holds a node port, empty when it is free or the MyWeb's own.
func (c *Controller) holder(web *webv1.MyWeb, port int32) string {
	found, err := c.caches.Services.Informer().GetIndexer().ByIndex(byNodePort, strconv.Itoa(int(port)))
	if err != nil {
		panic(err) // there is no such index
	}
	for _, obj := range found {
		if service := obj.(*corev1.Service); !belongsTo(service, web) || service.Name != web.Name {
			return service.Namespace + "/" + service.Name
		}
	}
	return ""
}

// write applies one child under a condition: nothing may have taken its name since we looked. An existing
// child must still have its UID. One that is missing is applied with a resourceVersion: the API server
// creates an object in spite of it, but refuses to change one that has come into being.
func (c *Controller) write(ctx context.Context, web *webv1.MyWeb, child *child, wanted map[string]any) error {
	if child.live != nil {
		child.meta.UID = new(child.live.GetUID())
	} else {
		child.meta.ResourceVersion = new("1")
	}
	live, err := c.kinds[child.kind].apply(ctx, child.want, web.Namespace)
	if child.live != nil && mixed(err) && wanted["spec"] != nil {
		live, err = c.replaceSpec(ctx, child, wanted)
	}
	if err != nil {
		err = fmt.Errorf("apply %s %s/%s: %w", child.kind, web.Namespace, web.Name, err)
		switch reason := refusal(err); {
		case reason == webv1.ReasonNodePortUnavailable && c.portMayGetFree(web):
			return fmt.Errorf("%w: %w", errFreeing, err)
		case reason != "":
			return obstacle{reason: reason, message: err.Error(), unwatched: true}
		}
		return err
	}
	child.live = live
	c.own.add(nameOf(web), child.kind, live.GetResourceVersion())
	return nil
}

// replaceSpec restores a child of which somebody changed a field in a way that leaves no room for ours
// beside it, so that an apply is refused: an apply takes away only what is ours. The spec becomes exactly
// the wanted one; what others added to it goes.
func (c *Controller) replaceSpec(ctx context.Context, child *child, wanted map[string]any) (object, error) {
	have, err := runtime.DefaultUnstructuredConverter.ToUnstructured(child.live)
	if err != nil {
		return nil, err
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": child.live.GetUID(), "resourceVersion": child.live.GetResourceVersion()},
		"spec":     replacing(wanted["spec"], have["spec"]),
	})
	if err != nil {
		return nil, err
	}
	return c.kinds[child.kind].patch(ctx, child.live, patch)
}

// replacing is the merge patch that makes a value the wanted one: it takes lists as a whole, and null is
// for fields that shall go, or back to their defaults.
func replacing(want, have any) any {
	fields, ok := want.(map[string]any)
	if !ok {
		return want
	}
	had, _ := have.(map[string]any)
	patch := map[string]any{}
	for field := range had {
		patch[field] = nil
	}
	for field, value := range fields {
		patch[field] = replacing(value, had[field])
	}
	return patch
}

// refusal is the reason for a condition when the API server does not want a child, and will not want it
// at the next try either; empty when the error speaks of a moment: a conflict, a server that is busy.
func refusal(err error) string {
	cause, found := apierrors.StatusCause(err, metav1.CauseTypeFieldValueInvalid)
	switch {
	case found && strings.HasSuffix(cause.Field, ".nodePort") && strings.Contains(cause.Message, "already allocated"):
		return webv1.ReasonNodePortUnavailable
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return "" // nor will it: sync gives up
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err), apierrors.IsBadRequest(err), apierrors.IsRequestEntityTooLargeError(err):
		return webv1.ReasonChildRejected
	}
	return ""
}

// mixed reports whether the API server may have refused an object because fields of others do not go with
// ours: two elements of a list with one name, two ports of a Service with one node port, a volume of two
// types.
func mixed(err error) bool {
	return apierrors.IsInvalid(err) && refusal(err) != webv1.ReasonNodePortUnavailable ||
		err != nil && strings.Contains(err.Error(), "duplicate nodePort")
}

// sign annotates a wanted child with whose it is and the hash of itself, and returns it as a tree of
// fields.
func sign(web *webv1.MyWeb, c *child) (map[string]any, error) {
	data, err := json.Marshal(c.want)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(data)
	c.meta.Annotations = map[string]string{annotationApplied: string(web.UID) + "/" + hex.EncodeToString(sum[:8])}
	return runtime.DefaultUnstructuredConverter.ToUnstructured(c.want)
}

// covers reports whether live has every field of wanted, with the same value. What else live has belongs
// to others: defaults of the API server, labels, sidecars.
func covers(live object, wanted map[string]any) (bool, error) {
	if live == nil {
		return false, nil
	}
	have, err := runtime.DefaultUnstructuredConverter.ToUnstructured(live)
	if err != nil {
		return false, err
	}
	for field, value := range wanted {
		if field == "apiVersion" || field == "kind" { // not set on objects from a typed cache
			continue
		}
		if !contained(field, value, have[field]) {
			return false, nil
		}
	}
	return true, nil
}

// sharedLists are the lists to which others may add elements of their own, in any place. All other
// lists are wholly ours.
var sharedLists = []string{"containers", "ownerReferences", "ports", "volumeMounts", "volumes"}

// contained reports whether the value that a field shall have is part of the one that it has.
func contained(field string, want, have any) bool {
	switch want := want.(type) {
	case map[string]any:
		have, ok := have.(map[string]any)
		for key, value := range want {
			ok = ok && contained(key, value, have[key])
		}
		return ok
	case []any:
		have, ok := have.([]any)
		if !slices.Contains(sharedLists, field) {
			return ok && slices.EqualFunc(want, have, func(w, h any) bool { return contained("", w, h) })
		}
		for _, value := range want {
			ok = ok && slices.ContainsFunc(have, func(h any) bool { return contained("", value, h) })
		}
		return ok
	default:
		return reflect.DeepEqual(want, have)
	}
}
