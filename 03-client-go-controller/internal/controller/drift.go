package controller

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"golang.org/x/time/rate"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"

	"example.com/operator-workshop/03-client-go-controller/internal/fields"
	"example.com/operator-workshop/03-client-go-controller/internal/myweb"
	webv1 "example.com/operator-workshop/03-client-go-controller/pkg/apis/myweb/v1"
)

// replace replaces the operator's ports, volumes and probes that another client edited, when an apply was refused because
// of them; otherwise it returns the refusal. An apply merges ports by number and protocol: when one of these was edited,
// the apply adds a second port of the same name, and the API server refuses it. Demanded by behaviour/05-edited-port,
// fault/18-service-edited and fault/18-deployment-edited.
func (c *Controller) replace(ctx context.Context, child *myweb.Child, refusal error) (myweb.Object, error) {
	duplicate := apierrors.IsInternalError(refusal) && strings.Contains(refusal.Error(), "duplicate nodePort")
	live := fields.Of(child.Live)
	if !duplicate && !apierrors.IsInvalid(refusal) || !fields.Replace(fields.Of(child.Desired), live) {
		return nil, refusal
	}
	patch, err := json.Marshal(map[string]any{ // of the state in the cache alone
		"metadata": map[string]any{"resourceVersion": child.Live.GetResourceVersion()}, "spec": live["spec"]})
	if err != nil {
		return nil, err
	}
	name, namespace := child.Live.GetName(), child.Live.GetNamespace()
	options := metav1.PatchOptions{FieldManager: myweb.FieldOwner}
	switch child.Live.(type) {
	case *appsv1.Deployment:
		return c.kube.AppsV1().Deployments(namespace).Patch(ctx, name, types.MergePatchType, patch, options)
	case *corev1.Service:
		return c.kube.CoreV1().Services(namespace).Patch(ctx, name, types.MergePatchType, patch, options)
	}
	return nil, refusal
}

// Demanded by fault/21-second-writer: drift is corrected, but not as fast as another client can write.

// errDriftLimit asks for a later try.
var errDriftLimit = errors.New("another client edits a child again and again")

// driftLimits limit the corrections of each child: five at once, then one every ten seconds.
type driftLimits struct{ limiters *lru.Cache }

func newDriftLimits() driftLimits { return driftLimits{lru.New(4096)} }

// allow reports whether a child may be corrected now, and counts the correction.
func (d driftLimits) allow(web *webv1.MyWeb, child *myweb.Child) bool {
	key := string(web.UID) + child.Kind
	limiter, known := d.limiters.Get(key)
	if !known {
		limiter = rate.NewLimiter(rate.Every(10*time.Second), 5)
		d.limiters.Add(key, limiter)
	}
	return limiter.(*rate.Limiter).Allow()
}

// isDrift reports whether a child was edited by another client: the last apply was of the same desired state.
func isDrift(child *myweb.Child) bool {
	applied := myweb.Kind.Annotation()
	return child.Live.GetUID() != "" && child.Live.GetAnnotations()[applied] == child.Meta.Annotations[applied]
}
