package controller

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/klog/v2"

	"example.com/operator-workshop/03-client-go-controller/internal/myweb"
	webv1 "example.com/operator-workshop/03-client-go-controller/pkg/apis/myweb/v1"
)

// applyChild applies one child unless it is up to date. The answer becomes its live state. It returns a
// ConditionError when the child cannot get its desired state.
//
// Another object may have taken the child's name since the cache was read, and must not be changed. So a live child
// must still have its UID, and a missing child is applied with a resourceVersion: (*Store).Update in
// k8s.io/apiserver/pkg/registry/generic/registry creates an object in spite of it ("Wipe metadata on create-via-update
// and create-via-apply requests"), but answers 409 when an object exists by now. A create would do the same, but its
// fields would belong to an update, and a later apply could not remove them.
func (c *Controller) applyChild(ctx context.Context, web *webv1.MyWeb, child *myweb.Child) error {
	if child.Difference() == "" {
		return nil
	}
	if uid := child.Live.GetUID(); uid != "" {
		child.Meta.UID = &uid
	} else {
		child.Meta.ResourceVersion = new("1")
		if child.BeforeCreate != nil {
			child.BeforeCreate()
		}
	}
	if err := c.checkNodePort(web, child); err != nil {
		return err
	}
	if isDrift(child) && !c.drift.allow(web, child) {
		return errDriftLimit
	}
	live, err := c.apply(ctx, child)
	if err != nil {
		live, err = c.replace(ctx, child, err)
	}
	if isNodePortTaken(err) {
		return c.nodePortRefused(web, err)
	}
	if err != nil {
		return fmt.Errorf("apply %s %s: %w", child.Kind, nameOf(web), err)
	}
	child.Live = live
	c.expectations.expect(nameOf(web), child.Kind, live.GetResourceVersion())
	klog.FromContext(ctx).Info("Applied child", "kind", child.Kind)
	return nil
}

// apply sends the desired state of a child by server-side apply, with the client of its kind.
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
