package controller

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
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
	for _, child := range c.list {
		err := r.Get(ctx, client.ObjectKeyFromObject(web), child.live)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("get %s of MyWeb %s/%s: %w", *child.want.(kinded).GetKind(), web.Namespace, web.Name, err)
		}
		if !metav1.IsControlledBy(child.live, web) {
			return conflict(child)
		}
	}
	return nil
}

// apply writes the children that are not as they should be, in order, each with what the API server
// answers as its new live state.
func (r *Reconciler) apply(ctx context.Context, c *children) error {
	for _, child := range c.list {
		if err := sign(child); err != nil {
			return err
		}
		same, err := covers(child.live, child.want)
		if err != nil || same {
			if err != nil {
				return err
			}
			continue
		}
		if err := r.applyChild(ctx, child); err != nil {
			return err
		}
	}
	return nil
}

// applyChild applies one child under a condition: nothing may have taken its name since we looked. An
// existing child must still have its UID. One that is missing is applied with a resourceVersion: the API
// server creates an object in spite of it, but refuses to change one that has come into being.
func (r *Reconciler) applyChild(ctx context.Context, c child) error {
	if uid := c.live.GetUID(); uid != "" {
		c.meta.UID = &uid
	} else {
		c.meta.ResourceVersion = new("1")
	}
	kind, key := *c.want.(kinded).GetKind(), *c.meta.Namespace+"/"+*c.meta.Name
	err := r.Client.Apply(ctx, c.want, fieldOwner, client.ForceOwnership)
	switch {
	case nodePortTaken(err):
		return obstacle{webv1.ReasonNodePortUnavailable, fmt.Sprintf("apply Service %s: %v", key, err)}
	case err != nil:
		return fmt.Errorf("apply %s %s: %w", kind, key, err)
	}
	log.FromContext(ctx).Info("Applied child", "kind", kind)
	// Apply leaves the server's answer in c.want.
	answer, err := json.Marshal(c.want)
	if err != nil {
		return err
	}
	return json.Unmarshal(answer, c.live)
}

// nodePortTaken reports whether the API server refused a Service because another one has its node port.
func nodePortTaken(err error) bool {
	cause, found := apierrors.StatusCause(err, metav1.CauseTypeFieldValueInvalid)
	return found && strings.HasSuffix(cause.Field, ".nodePort") && strings.Contains(cause.Message, "already allocated")
}

// kinded is what every apply configuration can do.
type kinded interface{ GetKind() *string }

func conflict(c child) obstacle {
	return obstacle{webv1.ReasonResourceConflict, fmt.Sprintf("%s %s exists and is not controlled by this MyWeb: "+
		"delete or rename it", *c.want.(kinded).GetKind(), c.live.GetName())}
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

// covers reports whether live has every field of want, with the same value. What else live has belongs
// to others: defaults of the API server, labels, sidecars.
func covers(live client.Object, want runtime.ApplyConfiguration) (bool, error) {
	have, err := runtime.DefaultUnstructuredConverter.ToUnstructured(live)
	if err != nil {
		return false, err
	}
	wanted, err := runtime.DefaultUnstructuredConverter.ToUnstructured(want)
	if err != nil {
		return false, err
	}
	delete(wanted, "apiVersion") // not set on objects from a typed cache
	delete(wanted, "kind")
	return contained(wanted, have), nil
}

func contained(want, have any) bool {
	switch want := want.(type) {
	case map[string]any:
		have, ok := have.(map[string]any)
		for key, value := range want {
			ok = ok && contained(value, have[key])
		}
		return ok
	case []any:
		have, ok := have.([]any)
		if ok && len(want) > 0 {
			if _, objects := want[0].(map[string]any); !objects {
				return reflect.DeepEqual(want, have)
			}
		}
		for _, value := range want { // others may have added elements, in any place
			ok = ok && slices.ContainsFunc(have, func(h any) bool { return contained(value, h) })
		}
		return ok
	default:
		return reflect.DeepEqual(want, have)
	}
}
