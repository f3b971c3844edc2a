// Package v1alpha1 has the webhooks that the API server calls when a Memcached is written. They set a default name
// that depends on the Memcached's own name, refuse an image reference that no container runtime accepts, and warn
// about possible mistakes. All other rules are in the schema.
package v1alpha1

import (
	"context"
	"fmt"

	"github.com/distribution/reference"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	cachev1alpha1 "github.com/example/memcached-operator/api/v1alpha1"
	"github.com/example/memcached-operator/internal/controller"
)

// The webhook configurations: controller-gen generates config/webhook/manifests.yaml from the markers below.
//
//   - failurePolicy=ignore: when the webhook does not respond, the API server accepts the request. The controller
//     uses the default name anyway, and the status reports an invalid image. A broken operator must not prevent
//     users from editing Memcacheds.
//   - timeoutSeconds limits how long a writer waits. The response is computed from memory.
//   - sideEffects=None: a call changes nothing in the cluster, so the API server calls the webhook for dry runs too.
//   - matchConditions are evaluated inside the API server, before any call. The webhook gets only requests that
//     matter, and none about an object that is being deleted. The conditions of a mutating webhook see objects that
//     the schema has not checked yet, so they must not fail on a missing field or a wrong type.
//
// The service is "webhook-service" in "system" there; kustomize gives both their names.
//
// +kubebuilder:webhook:path=/mutate-cache-example-com-v1alpha1-memcached,mutating=true,failurePolicy=ignore,timeoutSeconds=5,sideEffects=None,groups=cache.example.com,resources=memcacheds,verbs=create;update,versions=v1alpha1,name=mmemcached-v1alpha1.kb.io,admissionReviewVersions=v1,patch=`{"matchConditions":[{"name":"config-without-name","expression":"has(object.spec) && type(object.spec) == map && has(object.spec.configRef) && type(object.spec.configRef) == map && !has(object.spec.configRef.name)"},{"name":"not-being-deleted","expression":"!has(object.metadata.deletionTimestamp)"}]}`
// +kubebuilder:webhook:path=/validate-cache-example-com-v1alpha1-memcached,mutating=false,failurePolicy=ignore,timeoutSeconds=5,sideEffects=None,groups=cache.example.com,resources=memcacheds,verbs=create;update,versions=v1alpha1,name=vmemcached-v1alpha1.kb.io,admissionReviewVersions=v1,patch=`{"matchConditions":[{"name":"image-or-config-changed","expression":"oldObject == null || (has(oldObject.spec) && type(oldObject.spec) != map) || object.?spec.?image != oldObject.?spec.?image || object.?spec.?configRef != oldObject.?spec.?configRef"},{"name":"not-being-deleted","expression":"!has(object.metadata.deletionTimestamp)"}]}`

// SetupMemcachedWebhookWithManager adds the webhooks of Memcacheds to the manager's webhook server.
func SetupMemcachedWebhookWithManager(mgr ctrl.Manager) error {
	return ctrl.NewWebhookManagedBy(mgr, &cachev1alpha1.Memcached{}).
		WithDefaulter(&MemcachedDefaulter{}).
		WithValidator(&MemcachedValidator{Configs: mgr.GetCache()}).
		Complete()
}

// MemcachedDefaulter sets a default that a schema cannot, because the defaults of a schema are constants.
type MemcachedDefaulter struct{}

var _ admission.Defaulter[*cachev1alpha1.Memcached] = &MemcachedDefaulter{}

// Default implements admission.Defaulter. A Memcached with generateName has no name yet; then the controller
// uses the name that the API server generates.
func (*MemcachedDefaulter) Default(_ context.Context, memcached *cachev1alpha1.Memcached) error {
	if ref := memcached.Spec.ConfigRef; ref != nil && ref.Name == "" {
		ref.Name = memcached.Name
	}
	return nil
}

// MemcachedValidator refuses invalid image references, and returns warnings.
type MemcachedValidator struct {
	// Configs reads ConfigMaps: the manager's cache, so that an answer costs no request.
	Configs client.Reader
}

var _ admission.Validator[*cachev1alpha1.Memcached] = &MemcachedValidator{}

// ValidateCreate implements admission.Validator.
func (v *MemcachedValidator) ValidateCreate(ctx context.Context,
	memcached *cachev1alpha1.Memcached) (admission.Warnings, error) {
	warnings, err := judgeImage(memcached)
	return append(warnings, v.configWarnings(ctx, memcached)...), err
}

// ValidateUpdate implements admission.Validator. It checks only changed fields: users must be able to
// edit a Memcached that already has an invalid image, and a warning is given once.
func (v *MemcachedValidator) ValidateUpdate(ctx context.Context,
	old, memcached *cachev1alpha1.Memcached) (warnings admission.Warnings, err error) {
	if memcached.Spec.Image != old.Spec.Image {
		warnings, err = judgeImage(memcached)
	}
	if was, is := old.Spec.ConfigRef, memcached.Spec.ConfigRef; is != nil && (was == nil || *was != *is) {
		warnings = append(warnings, v.configWarnings(ctx, memcached)...)
	}
	return warnings, err
}

// ValidateDelete implements admission.Validator. The API server does not send deletions.
func (*MemcachedValidator) ValidateDelete(context.Context, *cachev1alpha1.Memcached) (admission.Warnings, error) {
	return nil, nil
}

// judgeImage refuses an image that no container runtime accepts, and returns warnings about others. Because of
// registries with a port, digests and missing tags it cannot just search for the last colon, so it uses the
// package that defines the grammar. Clients show about 120 characters of a warning, so a warning does not
// repeat the image, which may be long.
func judgeImage(memcached *cachev1alpha1.Memcached) (admission.Warnings, error) {
	image := memcached.Spec.Image
	if image == "" { // the operator's default
		return nil, nil
	}
	named, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return nil, apierrors.NewInvalid(controller.Kind.GroupKind(), memcached.Name, field.ErrorList{
			field.Invalid(field.NewPath("spec", "image"), image, fmt.Sprintf("must be a reference "+
				"[registry[:port]/]path[:tag][@digest], for example memcached:1.6-alpine: %s", err)),
		})
	}
	if _, pinned := named.(reference.Digested); pinned {
		return nil, nil // a runtime ignores a tag beside a digest
	}
	tagged, ok := named.(reference.Tagged)
	switch {
	case !ok:
		return admission.Warnings{"spec.image has neither tag nor digest: each node takes the newest one when it pulls"}, nil
	case tagged.Tag() == "latest":
		return admission.Warnings{"spec.image has the tag latest: each node takes what that is when it pulls"}, nil
	}
	return nil, nil
}

// configWarnings returns as warnings the problems of the ConfigMap that the controller would report in the status. It
// never refuses: a user may create the ConfigMap after the Memcached, and may change it at any time.
func (v *MemcachedValidator) configWarnings(ctx context.Context,
	memcached *cachev1alpha1.Memcached) admission.Warnings {
	if memcached.Spec.ConfigRef == nil || memcached.Spec.ConfigRef.Name == "" {
		return nil
	}
	name, config := memcached.Spec.ConfigRef.Name, &corev1.ConfigMap{}
	err := v.Configs.Get(ctx, client.ObjectKey{Namespace: memcached.Namespace, Name: name}, config)
	if apierrors.IsNotFound(err) {
		return admission.Warnings{fmt.Sprintf("ConfigMap %s does not exist yet: the Memcached waits for it", name)}
	}
	if err != nil { // a namespace that this operator does not serve
		return nil
	}
	if _, err := controller.ParseConfig(config.Data); err != nil {
		return admission.Warnings{fmt.Sprintf("ConfigMap %s: %s", name, err)}
	}
	return nil
}
