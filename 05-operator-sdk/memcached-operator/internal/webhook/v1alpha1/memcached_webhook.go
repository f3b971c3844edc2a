// Package v1alpha1 answers the API server while a Memcached is being written: it fills in a name that
// depends on the Memcached's own, refuses what no container runtime takes as an image, and warns of what may
// be a mistake. The rest is in the schema.
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

// What the API server is told, in config/webhook/manifests.yaml, which controller-gen makes of the markers
// below:
//
//   - failurePolicy=ignore: what becomes of a request when nobody answers. A name that is not filled in is
//     taken by the controller all the same, and an image that slips through shows in status. A broken
//     operator must not keep people from editing Memcacheds.
//   - timeoutSeconds bounds what one writer waits. The answer comes from memory.
//   - sideEffects=None: an answer changes nothing but itself, so dry runs ask too.
//   - matchConditions are looked at inside the API server, before any call: only requests that matter come
//     here, and an object that is being deleted is left alone.
//
// The service is "webhook-service" in "system" there; kustomize gives both their names.
//
// +kubebuilder:webhook:path=/mutate-cache-example-com-v1alpha1-memcached,mutating=true,failurePolicy=ignore,timeoutSeconds=5,sideEffects=None,groups=cache.example.com,resources=memcacheds,verbs=create;update,versions=v1alpha1,name=mmemcached-v1alpha1.kb.io,admissionReviewVersions=v1,patch=`{"matchConditions":[{"name":"config-without-name","expression":"has(object.spec.configRef) && !has(object.spec.configRef.name)"},{"name":"not-being-deleted","expression":"!has(object.metadata.deletionTimestamp)"}]}`
// +kubebuilder:webhook:path=/validate-cache-example-com-v1alpha1-memcached,mutating=false,failurePolicy=ignore,timeoutSeconds=5,sideEffects=None,groups=cache.example.com,resources=memcacheds,verbs=create;update,versions=v1alpha1,name=vmemcached-v1alpha1.kb.io,admissionReviewVersions=v1,patch=`{"matchConditions":[{"name":"image-or-config-changed","expression":"oldObject == null || object.spec.?image != oldObject.spec.?image || object.spec.?configRef != oldObject.spec.?configRef"},{"name":"not-being-deleted","expression":"!has(object.metadata.deletionTimestamp)"}]}`

// SetupMemcachedWebhookWithManager makes the manager's webhook server answer for Memcacheds.
func SetupMemcachedWebhookWithManager(mgr ctrl.Manager) error {
	return ctrl.NewWebhookManagedBy(mgr, &cachev1alpha1.Memcached{}).
		WithDefaulter(&MemcachedDefaulter{}).
		WithValidator(&MemcachedValidator{Configs: mgr.GetCache()}).
		Complete()
}

// MemcachedDefaulter fills in what a schema cannot: its defaults are constants.
type MemcachedDefaulter struct{}

var _ admission.Defaulter[*cachev1alpha1.Memcached] = &MemcachedDefaulter{}

// Default implements admission.Defaulter. One that asks for a generated name has none yet; then the
// controller takes the name that it gets.
func (*MemcachedDefaulter) Default(_ context.Context, memcached *cachev1alpha1.Memcached) error {
	if ref := memcached.Spec.ConfigRef; ref != nil && ref.Name == "" {
		ref.Name = memcached.Name
	}
	return nil
}

// MemcachedValidator refuses images that cannot be, and warns.
type MemcachedValidator struct {
	// Configs reads ConfigMaps: the manager's cache, so that an answer costs no request.
	Configs client.Reader
}

var _ admission.Validator[*cachev1alpha1.Memcached] = &MemcachedValidator{}

// ValidateCreate implements admission.Validator.
func (v *MemcachedValidator) ValidateCreate(ctx context.Context, memcached *cachev1alpha1.Memcached) (admission.Warnings, error) {
	warnings, err := judgeImage(memcached)
	return append(warnings, v.configWarnings(ctx, memcached)...), err
}

// ValidateUpdate implements admission.Validator. It judges only what the update changes: a Memcached that
// has a bad image already must stay editable, and who warned once need not nag.
func (v *MemcachedValidator) ValidateUpdate(ctx context.Context, old, memcached *cachev1alpha1.Memcached) (warnings admission.Warnings, err error) {
	if memcached.Spec.Image != old.Spec.Image {
		warnings, err = judgeImage(memcached)
	}
	if was, is := old.Spec.ConfigRef, memcached.Spec.ConfigRef; is != nil && (was == nil || *was != *is) {
		warnings = append(warnings, v.configWarnings(ctx, memcached)...)
	}
	return warnings, err
}

// ValidateDelete implements admission.Validator. Deletions are not sent here.
func (*MemcachedValidator) ValidateDelete(context.Context, *cachev1alpha1.Memcached) (admission.Warnings, error) {
	return nil, nil
}

// judgeImage refuses an image that no container runtime takes, and says what is doubtful about others.
// Registries with a port, digests and missing tags make it more than a look for the last colon, so the
// grammar's own package reads it. Clients show about 120 characters of a warning, so the image, which may be
// long, is not repeated.
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
		return nil, nil // a tag beside it is decoration
	}
	tagged, ok := named.(reference.Tagged)
	switch {
	case !ok:
		return admission.Warnings{"spec.image has neither tag nor digest: each node takes what is latest when it pulls"}, nil
	case tagged.Tag() == "latest":
		return admission.Warnings{"spec.image has the tag latest: each node takes what that is when it pulls"}, nil
	}
	return nil, nil
}

// configWarnings tells what the controller would tell in status about the ConfigMap. It never refuses: the
// ConfigMap may come after the Memcached, and may change at any time.
func (v *MemcachedValidator) configWarnings(ctx context.Context, memcached *cachev1alpha1.Memcached) admission.Warnings {
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
