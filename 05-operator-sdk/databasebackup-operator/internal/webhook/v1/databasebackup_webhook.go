// Package v1 has the webhook that the API server calls when a DatabaseBackup is written. It refuses an invalid
// schedule, and warns about fields that are accepted but may be a mistake. All other rules are in the schema.
package v1

import (
	"context"
	"errors"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	databasesv1 "github.com/example/databasebackup-operator/api/v1"
	"github.com/example/databasebackup-operator/internal/controller"
	"github.com/example/databasebackup-operator/internal/schedule"
)

// The webhook configuration: controller-gen generates config/webhook/manifests.yaml from the marker below.
//
//   - failurePolicy=ignore: when the webhook does not respond, the API server accepts the request. The status reports
//     an invalid schedule, and nothing runs. A broken operator must not prevent users from editing DatabaseBackups.
//   - timeoutSeconds limits how long a writer waits. The response is computed from memory.
//   - sideEffects=None: a call changes nothing in the cluster, so the API server calls the webhook for dry runs too.
//   - matchConditions are evaluated inside the API server, before any call. The webhook gets only requests that change
//     the spec, and none about an object that is being deleted, so that its finalizers can be removed.
//
// The service is "webhook-service" in "system" there; kustomize gives both their names.
//
// +kubebuilder:webhook:path=/validate-databases-test-io-v1-databasebackup,mutating=false,failurePolicy=ignore,timeoutSeconds=5,sideEffects=None,groups=databases.test.io,resources=databasebackups,verbs=create;update,versions=v1,name=vdatabasebackup-v1.kb.io,admissionReviewVersions=v1,patch=`{"matchConditions":[{"name":"spec-changed","expression":"oldObject == null || object.?spec != oldObject.?spec"},{"name":"not-being-deleted","expression":"!has(object.metadata.deletionTimestamp)"}]}`

// SetupDatabaseBackupWebhookWithManager adds the webhook of DatabaseBackups to the manager's webhook server. image is
// the operator's default for DatabaseBackups without an image; it may be empty.
func SetupDatabaseBackupWebhookWithManager(mgr ctrl.Manager, image string) error {
	return ctrl.NewWebhookManagedBy(mgr, &databasesv1.DatabaseBackup{}).
		WithValidator(&DatabaseBackupValidator{Image: image}).
		Complete()
}

// DatabaseBackupValidator refuses invalid schedules, and returns warnings.
type DatabaseBackupValidator struct {
	// Image is the operator's default; it may be empty.
	Image string
}

var _ admission.Validator[*databasesv1.DatabaseBackup] = &DatabaseBackupValidator{}

// ValidateCreate implements admission.Validator.
func (v *DatabaseBackupValidator) ValidateCreate(
	_ context.Context, backup *databasesv1.DatabaseBackup,
) (admission.Warnings, error) {
	if err := judgeSchedule(backup); err != nil {
		return nil, err
	}
	return slices.Concat(v.incomplete(backup), deletes(backup)), nil
}

// ValidateUpdate implements admission.Validator. It checks only the fields that the update changes: a DatabaseBackup
// with an invalid schedule must stay editable, and a user gets a warning only once.
func (v *DatabaseBackupValidator) ValidateUpdate(
	_ context.Context, old, backup *databasesv1.DatabaseBackup,
) (warnings admission.Warnings, err error) {
	if backup.Spec.Schedule != old.Spec.Schedule || backup.Spec.TimeZone != old.Spec.TimeZone {
		if err := judgeSchedule(backup); err != nil {
			return nil, err
		}
	}
	if !slices.Equal(controller.Missing(backup, v.Image), controller.Missing(old, v.Image)) {
		warnings = v.incomplete(backup)
	}
	if backup.Spec.DeletionPolicy != old.Spec.DeletionPolicy {
		warnings = append(warnings, deletes(backup)...)
	}
	return warnings, nil
}

// ValidateDelete implements admission.Validator. Deletions are not sent here.
func (*DatabaseBackupValidator) ValidateDelete(
	context.Context, *databasesv1.DatabaseBackup,
) (admission.Warnings, error) {
	return nil, nil
}

// judgeSchedule refuses a schedule with a number out of range, a date that does not exist, or an unknown time zone.
// This needs a calendar and a list of time zones, which CEL does not have.
func judgeSchedule(backup *databasesv1.DatabaseBackup) error {
	_, err := schedule.Parse(backup.Spec.Schedule, backup.Spec.TimeZone)
	if fault, wrong := errors.AsType[*schedule.Fault](err); wrong {
		return apierrors.NewInvalid(controller.BackupKind.GroupKind(), backup.Name, field.ErrorList{
			field.Invalid(field.NewPath("spec", fault.Field), fault.Value, fault.Why)})
	}
	return err
}

// incomplete says which fields a DatabaseBackup lacks. It is accepted, but it does not run until they are set. Clients
// show about 120 characters of a warning, so the names of the fields begin below the spec.
func (v *DatabaseBackupValidator) incomplete(backup *databasesv1.DatabaseBackup) admission.Warnings {
	fields := controller.Missing(backup, v.Image)
	if len(fields) == 0 {
		return nil
	}
	return admission.Warnings{"nothing runs until the spec has " + strings.ReplaceAll(strings.Join(fields, ", "),
		"spec.", "")}
}

// deletes says what deletionPolicy Delete means.
func deletes(backup *databasesv1.DatabaseBackup) admission.Warnings {
	if backup.Spec.DeletionPolicy != databasesv1.DeleteFiles {
		return nil
	}
	return admission.Warnings{"spec.deletionPolicy is Delete: when the DatabaseBackup is deleted, its backups go with it"}
}
