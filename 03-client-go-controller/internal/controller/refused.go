package controller

import (
	"context"
	"errors"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/operator-workshop/03-client-go-controller/internal/hardening"
	"example.com/operator-workshop/03-client-go-controller/internal/myweb"
	webv1 "example.com/operator-workshop/03-client-go-controller/pkg/apis/myweb/v1"
)

// Demanded by fault/35, a node port that is taken, and by fault/18-service-edited and fault/18-service-port-added: see
// hardening.Refused and hardening.ReplaceElements.

// refused turns an error of an apply into a condition when the API server will refuse the next try, too. Other
// errors pass, like a conflict or a busy server.
func (c *Controller) refused(web *webv1.MyWeb, err error) error {
	if hardening.IsNodePortTaken(err) {
		return c.nodePortRefused(web, err)
	}
	return hardening.Refused(err)
}

// replaceElements replaces the list elements for which an apply was refused, and applies once more when that
// leaves another difference. When there is nothing to replace, it returns the refusal.
func (c *Controller) replaceElements(
	ctx context.Context, child *myweb.Child, differences []hardening.Difference, refused error,
) (live myweb.Object, err error) {
	patch, err := hardening.ReplaceElements(differences, child.Live)
	if patch == nil {
		return nil, errors.Join(refused, err)
	}
	namespace, name := *child.Meta.Namespace, *child.Meta.Name
	options := metav1.PatchOptions{FieldManager: myweb.FieldOwner}
	switch child.Live.(type) {
	case *corev1.ConfigMap:
		live, err = c.kube.CoreV1().ConfigMaps(namespace).Patch(ctx, name, types.JSONPatchType, patch, options)
	case *appsv1.Deployment:
		live, err = c.kube.AppsV1().Deployments(namespace).Patch(ctx, name, types.JSONPatchType, patch, options)
	case *corev1.Service:
		live, err = c.kube.CoreV1().Services(namespace).Patch(ctx, name, types.JSONPatchType, patch, options)
	}
	if err != nil {
		return nil, err
	}
	if rest, err := hardening.Differences(child.Fields, live); err != nil || len(rest) == 0 {
		return live, err
	}
	return c.apply(ctx, child)
}
