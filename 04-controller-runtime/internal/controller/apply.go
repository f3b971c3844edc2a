package controller

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
)

// fieldOwner owns the fields that the operator applies.
const fieldOwner = client.FieldOwner("myweb-operator")

// annotationApplied on a child is the hash of what was applied last. It shows when a field is no longer
// wanted, which comparing the wanted fields cannot.
const annotationApplied = "operator.k8s-summit.org/applied"

// An obstacle keeps a MyWeb from being served. It is told in status; it is no failure of the operator.
type obstacle struct{ reason, message string }

func (o obstacle) Error() string { return o.message }

// look reads the children as they are from the cache. It returns an obstacle when one of them has its
// name, but is not controlled by the MyWeb.
func (r *Reconciler) look(ctx context.Context, web *webv1.MyWeb, c *children) error {
	var foreign error
	for _, child := range c.list { // all of them, also behind an obstacle: status tells of the others
		err := r.Get(ctx, client.ObjectKeyFromObject(web), child.live)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("get %s of MyWeb %s/%s: %w", child.kind, web.Namespace, web.Name, err)
		}
		if foreign == nil && !metav1.IsControlledBy(child.live, web) {
			foreign = obstacle{webv1.ReasonResourceConflict, fmt.Sprintf("%s %s exists and is not controlled by this "+
				"MyWeb: delete or rename it", child.kind, web.Name)}
		}
	}
	return foreign
}

// apply writes the children that are not as they should be, in order, each with what the API server
// answers as its new live state.
func (r *Reconciler) apply(ctx context.Context, web *webv1.MyWeb, c *children) error {
	for _, child := range c.list {
		if err := sign(child); err != nil {
			return err
		}
		wanted, err := runtime.DefaultUnstructuredConverter.ToUnstructured(child.want)
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
		if service, ok := child.want.(*corev1ac.ServiceApplyConfiguration); ok && child.live.GetUID() == "" {
			askForOldPort(web, service)
		}
		if err := r.applyChild(ctx, child, wanted); err != nil {
			return err
		}
		log.FromContext(ctx).Info("Applied child", "kind", child.kind)
		if same, err := covers(child.live, wanted); err != nil || !same {
			return errors.Join(err, fmt.Errorf("apply %s %s/%s: the API server accepted it, and something there "+
				"(a webhook?) changed it at once", child.kind, web.Namespace, web.Name))
		}
	}
	return nil
}

// applyChild applies one child under a condition: nothing may have taken its name since we looked. An
// existing child must still have its UID. One that is missing is applied with a resourceVersion: the API
// server creates an object in spite of it, but refuses to change one that has come into being.
func (r *Reconciler) applyChild(ctx context.Context, c child, wanted map[string]any) error {
	if uid := c.live.GetUID(); uid != "" {
		c.meta.UID = &uid
	} else {
		c.meta.ResourceVersion = new("1")
	}
	key := *c.meta.Namespace + "/" + *c.meta.Name
	err := r.Client.Apply(ctx, c.want, fieldOwner, client.ForceOwnership)
	switch {
	case nodePortTaken(err):
		return obstacle{webv1.ReasonNodePortUnavailable, fmt.Sprintf("apply %s %s: %v", c.kind, key, err)}
	case c.live.GetUID() != "" && elementTwice(err):
		return r.replaceLists(ctx, c, wanted)
	case err != nil:
		return fmt.Errorf("apply %s %s: %w", c.kind, key, err)
	}
	// Apply leaves the server's answer in c.want.
	answer, err := json.Marshal(c.want)
	if err != nil {
		return err
	}
	reflect.ValueOf(c.live).Elem().SetZero() // or what the answer lacks would stay
	return json.Unmarshal(answer, c.live)
}

// replaceLists restores a child of which somebody changed the key of a list element, such as the number
// of a port: an apply would add our element beside theirs, with the same name, and is refused. A merge
// patch takes the lists of spec as a whole; what others added to them goes.
func (r *Reconciler) replaceLists(ctx context.Context, c child, wanted map[string]any) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": c.live.GetUID(), "resourceVersion": c.live.GetResourceVersion()},
		"spec":     wanted["spec"],
	})
	if err != nil {
		return err
	}
	if err := r.Patch(ctx, c.live, client.RawPatch(types.MergePatchType, patch), fieldOwner); err != nil {
		return fmt.Errorf("restore %s %s: %w", c.kind, client.ObjectKeyFromObject(c.live), err)
	}
	return nil
}

// nodePortTaken reports whether the API server refused a Service because another one has its node port.
func nodePortTaken(err error) bool {
	cause, found := apierrors.StatusCause(err, metav1.CauseTypeFieldValueInvalid)
	return found && strings.HasSuffix(cause.Field, ".nodePort") && strings.Contains(cause.Message, "already allocated")
}

// elementTwice reports whether the API server refused an object because two elements of a list have the
// same name, or two ports of a Service the same node port.
func elementTwice(err error) bool {
	return apierrors.HasStatusCause(err, metav1.CauseTypeFieldValueDuplicate) ||
		err != nil && strings.Contains(err.Error(), "duplicate nodePort")
}

// sign annotates a wanted child with the hash of itself.
func sign(c child) error {
	data, err := json.Marshal(c.want)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(data)
	annotations := maps.Clone(c.meta.Annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[annotationApplied] = hex.EncodeToString(sum[:8])
	c.meta.Annotations = annotations
	return nil
}

// covers reports whether live has every field of wanted, with the same value. What else live has belongs
// to others: defaults of the API server, labels, sidecars.
func covers(live client.Object, wanted map[string]any) (bool, error) {
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
