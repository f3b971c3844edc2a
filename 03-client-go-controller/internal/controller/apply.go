package controller

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/klog/v2"

	"example.com/operator-workshop/03-client-go-controller/internal/hardening"
	"example.com/operator-workshop/03-client-go-controller/internal/myweb"
	webv1 "example.com/operator-workshop/03-client-go-controller/pkg/apis/myweb/v1"
)

// applyChildren applies the children that are not up to date, in order. A child that an admission policy changed,
// or that must wait, does not stop the others: what they report is returned together.
func (c *Controller) applyChildren(
	ctx context.Context, web *webv1.MyWeb, children []*myweb.Child,
) (*myweb.ConditionError, error) {
	return hardening.ApplyAll(children, func(child *myweb.Child) error { return c.applyChild(ctx, web, child) })
}

// applyChild applies one child unless it is up to date. The answer becomes its live state. It returns a
// RequeueAfter when drift may not be corrected yet, and a ConditionError when the child cannot be as desired.
func (c *Controller) applyChild(ctx context.Context, web *webv1.MyWeb, child *myweb.Child) error {
	differences, err := hardening.Differences(child.Fields, child.Live)
	if err != nil || len(differences) == 0 {
		return err
	}
	guard, err := c.guardApply(ctx, web, child, differences)
	if err != nil {
		return err
	}
	if err := c.chooseNodePort(web, child); err != nil {
		return err
	}
	if err := c.write(ctx, web, child, differences); err != nil {
		return err
	}
	klog.FromContext(ctx).Info("Applied child", "kind", child.Kind)
	return guard.Applied()
}

// write applies one child under a condition: nothing may have taken its name since the cache was read. A live
// child must still have its UID. A missing one is applied with a resourceVersion: (*Store).Update in
// k8s.io/apiserver/pkg/registry/generic/registry creates an object in spite of it ("Wipe metadata on
// create-via-update and create-via-apply requests"), but answers 409 when an object exists by now. A create
// would do the same, but its fields would belong to an update, and a later apply could not remove them.
func (c *Controller) write(
	ctx context.Context, web *webv1.MyWeb, child *myweb.Child, differences []hardening.Difference,
) error {
	if uid := child.Live.GetUID(); uid != "" {
		child.Meta.UID = &uid
	} else {
		child.Meta.ResourceVersion = new("1")
	}
	live, err := c.apply(ctx, child)
	if hardening.MustReplaceElements(err) {
		live, err = c.replaceElements(ctx, child, differences, err)
	}
	if err != nil {
		return c.refused(web, fmt.Errorf("apply %s %s: %w", child.Kind, nameOf(web), err))
	}
	child.Live = live
	c.expectations.expect(nameOf(web), child.Kind, live.GetResourceVersion())
	return nil
}

// apply sends the desired state of a child by server-side apply: each kind has a client of its own.
func (c *Controller) apply(ctx context.Context, child *myweb.Child) (live myweb.Object, err error) {
	options := metav1.ApplyOptions{FieldManager: myweb.FieldOwner, Force: true}
	namespace := *child.Meta.Namespace
	switch desired := child.Desired.(type) {
	case *corev1ac.ConfigMapApplyConfiguration:
		return c.kube.CoreV1().ConfigMaps(namespace).Apply(ctx, desired, options)
	case *appsv1ac.DeploymentApplyConfiguration:
		return c.kube.AppsV1().Deployments(namespace).Apply(ctx, desired, options)
	case *corev1ac.ServiceApplyConfiguration:
		return c.kube.CoreV1().Services(namespace).Apply(ctx, desired, options)
	}
	panic("no client for " + child.Kind)
}
