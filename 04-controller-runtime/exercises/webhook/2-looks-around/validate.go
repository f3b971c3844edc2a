// Package ports validates the node ports of MyWebs before the API server stores them.
package ports

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
)

// SetupWithManager lets the manager answer the API server, which asks for each MyWeb that is created or updated.
func SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewWebhookManagedBy(mgr, &webv1.MyWeb{}).WithValidator(validator{mgr.GetClient()}).Complete()
}

type validator struct {
	// webs reads the manager's cache, which has the MyWebs of all namespaces.
	webs client.Reader
}

// ValidateCreate implements admission.Validator.
func (v validator) ValidateCreate(ctx context.Context, web *webv1.MyWeb) (admission.Warnings, error) {
	return nil, v.refuseTakenPort(ctx, web)
}

// ValidateUpdate implements admission.Validator. It checks only a port that changes: two MyWebs that have the same port
// already must stay editable.
func (v validator) ValidateUpdate(ctx context.Context, old, web *webv1.MyWeb) (admission.Warnings, error) {
	if nodePort(web) == nodePort(old) {
		return nil, nil
	}
	return nil, v.refuseTakenPort(ctx, web)
}

// ValidateDelete implements admission.Validator. The API server does not ask about deletions.
func (validator) ValidateDelete(context.Context, *webv1.MyWeb) (admission.Warnings, error) {
	return nil, nil
}

// refuseTakenPort returns an error that names the field and the other MyWeb when another MyWeb has the node port.
func (v validator) refuseTakenPort(ctx context.Context, web *webv1.MyWeb) error {
	port := web.Spec.NodePortNumber
	if port == nil { // the cluster allocates a port that is free
		return nil
	}
	all := &webv1.MyWebList{}
	if err := v.webs.List(ctx, all); err != nil {
		return apierrors.NewInternalError(fmt.Errorf("list MyWebs: %w", err))
	}
	self := client.ObjectKeyFromObject(web)
	for i := range all.Items {
		other := client.ObjectKeyFromObject(&all.Items[i])
		if other == self || nodePort(&all.Items[i]) != *port {
			continue
		}
		taken := field.Invalid(field.NewPath("spec", "nodePortNumber"), *port, fmt.Sprintf("MyWeb %s has this port", other))
		kind := webv1.SchemeGroupVersion.WithKind("MyWeb").GroupKind()
		return apierrors.NewInvalid(kind, web.Name, field.ErrorList{taken})
	}
	return nil
}

// nodePort returns the port that a MyWeb asks for, or the port that the cluster allocated and that it keeps; 0 means
// none yet.
func nodePort(web *webv1.MyWeb) int32 {
	if web.Spec.NodePortNumber != nil {
		return *web.Spec.NodePortNumber
	}
	return web.Status.NodePort
}
