// Package ports validates the node ports of MyWebs before the API server stores them.
package ports

import (
	"context"

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
	return nil, nil
}

// ValidateUpdate implements admission.Validator.
func (v validator) ValidateUpdate(ctx context.Context, old, web *webv1.MyWeb) (admission.Warnings, error) {
	return nil, nil
}

// ValidateDelete implements admission.Validator. The API server does not ask about deletions.
func (validator) ValidateDelete(context.Context, *webv1.MyWeb) (admission.Warnings, error) {
	return nil, nil
}

// nodePort returns the port that a MyWeb asks for, or the port that the cluster allocated and that it keeps; 0 means
// none yet.
func nodePort(web *webv1.MyWeb) int32 {
	if web.Spec.NodePortNumber != nil {
		return *web.Spec.NodePortNumber
	}
	return web.Status.NodePort
}
