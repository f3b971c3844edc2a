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
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
)

// look reads the children as they are from the cache. It returns an obstacle when one of them has its
// name, but is not the MyWeb's.
func (r *Reconciler) look(ctx context.Context, web *webv1.MyWeb, all children) error {
	var found *obstacle
	for _, child := range all { // all of them, also behind an obstacle: status tells of the others
		live := child.empty()
		err := r.Get(ctx, client.ObjectKeyFromObject(web), live)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("get %s %s/%s: %w", child.kind, web.Namespace, web.Name, err)
		}
		child.live = live
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
func (r *Reconciler) apply(ctx context.Context, web *webv1.MyWeb, all children) error {
	for _, child := range all {
		wanted, err := sign(web, child)
		if err != nil {
			return ownFault(err)
		}
		same, err := covers(child.live, wanted)
		if err != nil {
			return ownFault(err)
		}
		if same {
			continue
		}
		key, restoring := client.ObjectKeyFromObject(web), restores(web, child)
		if restoring {
			if wait := r.restored.wait(key, r.Clock.Now()); wait > 0 {
				return later(wait)
			}
		}
		if service, ok := child.want.(*corev1ac.ServiceApplyConfiguration); ok {
			if err := r.choosePort(ctx, web, child.live, &service.Spec.Ports[0]); err != nil {
				return err
			}
		}
		if err := r.write(ctx, web, child, wanted); err != nil {
			return err
		}
		if restoring { // what was refused is no fight, and has its own pauses
			r.restored.took(key, r.Clock.Now())
		}
		log.FromContext(ctx).Info("Applied child", "kind", child.kind)
		if same, err := covers(child.live, wanted); err != nil || !same {
			return errors.Join(err, fmt.Errorf("apply %s %s/%s: the API server accepted it, and something there "+
				"(a webhook?) changed it at once", child.kind, web.Namespace, web.Name))
		}
	}
	return nil
}

// ownFault wraps an error that can only come from a fault of this program. The same MyWeb brings it out at
// every try, and no watch tells of its end, for it ends with another version of the program. So it is not
// tried again, but logged once, and counted apart from other errors.
func ownFault(err error) error {
	return reconcile.TerminalError(fmt.Errorf("fault of the operator: %w", err))
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
func (r *Reconciler) choosePort(ctx context.Context, web *webv1.MyWeb, live client.Object, port *corev1ac.ServicePortApplyConfiguration) error {
	asked := port.NodePort
	if asked == nil && live == nil && web.Status.NodePort != 0 && r.portMayGetFree(web) {
		asked = new(web.Status.NodePort)
	}
	if asked == nil {
		return nil
	}
	holder, err := r.holder(ctx, web, *asked)
	switch {
	case err != nil:
		return err
	case holder == "":
		port.NodePort = asked
	case port.NodePort != nil:
		return obstacle{reason: webv1.ReasonNodePortUnavailable,
			message: fmt.Sprintf("node port %d is taken by Service %s", *asked, holder)}
	}
	return nil
}

// freeingTries are how often a node port is asked for that nobody is seen to hold, before it is told to be
// taken: for half a second and more, with growing pauses.
const freeingTries = 7

// portMayGetFree reports whether to ask once more for a node port that the API server refused, though nobody
// is seen to hold it. It frees the port of a deleted Service a moment after it told of the deletion: who
// makes a Service again at once, or a MyWeb of the same name, is refused, and nothing is wrong.
func (r *Reconciler) portMayGetFree(web *webv1.MyWeb) bool {
	return r.pauses.NumRequeues(requestFor(web)) < freeingTries
}

func requestFor(web *webv1.MyWeb) reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKeyFromObject(web)}
}

// holder is the Service that holds a node port, empty when it is free or the MyWeb's own. It does not wait
// until the cache holds the Services that are being written for other MyWebs, or one slow write would hold
// up all: should one of them take the port, the API server refuses it to us.
func (r *Reconciler) holder(ctx context.Context, web *webv1.MyWeb, port int32) (string, error) {
	var found corev1.ServiceList
	err := r.List(ctx, &found, client.MatchingFields{byNodePort: strconv.Itoa(int(port))}, client.DisableReadYourWritesConsistency)
	if err != nil {
		return "", fmt.Errorf("list Services with node port %d: %w", port, err)
	}
	for i := range found.Items {
		if service := &found.Items[i]; !belongsTo(service, web) || service.Name != web.Name {
			return service.Namespace + "/" + service.Name, nil
		}
	}
	return "", nil
}

// write applies one child under a condition: nothing may have taken its name since we looked. An existing
// child must still have its UID. One that is missing is applied with a resourceVersion: the API server
// creates an object in spite of it, but refuses to change one that has come into being.
func (r *Reconciler) write(ctx context.Context, web *webv1.MyWeb, child *child, wanted map[string]any) error {
	if child.live != nil {
		child.meta.UID = new(child.live.GetUID())
	} else {
		child.meta.ResourceVersion = new("1")
	}
	live, err := r.applied(ctx, child)
	if child.live != nil && mixed(err) && wanted["spec"] != nil {
		live, err = r.replaceSpec(ctx, child, wanted)
	}
	if err != nil {
		err = fmt.Errorf("apply %s %s/%s: %w", child.kind, web.Namespace, web.Name, err)
		switch reason := refusal(err); {
		case reason == webv1.ReasonNodePortUnavailable && r.portMayGetFree(web):
			return later(r.pauses.When(requestFor(web)))
		case reason != "":
			return obstacle{reason: reason, message: err.Error(), unwatched: true}
		}
		return err
	}
	child.live = live
	return nil
}

// applied applies what a child shall be and returns the API server's answer, which Apply leaves in its
// argument.
func (r *Reconciler) applied(ctx context.Context, child *child) (client.Object, error) {
	if err := r.Apply(ctx, child.want, fieldOwner, client.ForceOwnership); err != nil {
		return nil, err
	}
	answer, err := json.Marshal(child.want)
	if err != nil {
		return nil, err
	}
	live := child.empty()
	return live, json.Unmarshal(answer, live)
}

// replaceSpec restores a child of which somebody changed a field in a way that leaves no room for ours
// beside it, so that an apply is refused: an apply takes away only what is ours. The spec becomes exactly
// the wanted one; what others added to it goes.
func (r *Reconciler) replaceSpec(ctx context.Context, child *child, wanted map[string]any) (client.Object, error) {
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
	live := child.empty()
	live.SetNamespace(child.live.GetNamespace())
	live.SetName(child.live.GetName())
	return live, r.Patch(ctx, live, client.RawPatch(types.MergePatchType, patch), fieldOwner)
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
		return "" // nor will it: Reconcile gives up
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
func covers(live client.Object, wanted map[string]any) (bool, error) {
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
