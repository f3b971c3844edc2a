// Package v1 answers the API server while a DatabaseBackup is being written: it refuses a schedule that cannot be
// followed, and warns of what is accepted but may not be meant. The rest is in the schema.
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

// What the API server is told, in config/webhook/manifests.yaml, which controller-gen makes of the marker below:
//
//   - failurePolicy=ignore: what becomes of a request when nobody answers. A schedule that slips through shows in
//     status, and nothing runs by it. A broken operator must not keep people from editing DatabaseBackups.
//   - timeoutSeconds bounds what one writer waits. The answer comes from memory.
//   - sideEffects=None: an answer changes nothing, so dry runs ask too.
//   - matchConditions are looked at inside the API server, before any call: only a spec that changes comes here, and
//     an object that is being deleted is left alone, so that its finalizers can be taken off.
//
// The service is "webhook-service" in "system" there; kustomize gives both their names.
//
// +kubebuilder:webhook:path=/validate-databases-test-io-v1-databasebackup,mutating=false,failurePolicy=ignore,timeoutSeconds=5,sideEffects=None,groups=databases.test.io,resources=databasebackups,verbs=create;update,versions=v1,name=vdatabasebackup-v1.kb.io,admissionReviewVersions=v1,patch=`{"matchConditions":[{"name":"spec-changed","expression":"oldObject == null || object.spec != oldObject.spec"},{"name":"not-being-deleted","expression":"!has(object.metadata.deletionTimestamp)"}]}`

// SetupDatabaseBackupWebhookWithManager makes the manager's webhook server answer for DatabaseBackups. image is the
// operator's default for those that name none; it may be empty.
func SetupDatabaseBackupWebhookWithManager(mgr ctrl.Manager, image string) error {
	return ctrl.NewWebhookManagedBy(mgr, &databasesv1.DatabaseBackup{}).
		WithValidator(&DatabaseBackupValidator{Image: image}).
		Complete()
}

// DatabaseBackupValidator refuses schedules that cannot be followed, and warns.
type DatabaseBackupValidator struct {
	// Image is the operator's default; it may be empty.
	Image string
}

var _ admission.Validator[*databasesv1.DatabaseBackup] = &DatabaseBackupValidator{}

// ValidateCreate implements admission.Validator.
func (v *DatabaseBackupValidator) ValidateCreate(_ context.Context, backup *databasesv1.DatabaseBackup) (admission.Warnings, error) {
	if err := judgeSchedule(backup); err != nil {
		return nil, err
	}
	return slices.Concat(v.incomplete(backup), deletes(backup)), nil
}

// ValidateUpdate implements admission.Validator. It judges only what the update changes: a DatabaseBackup that has a
// bad schedule already must stay editable, and who was warned once need not hear it again.
func (v *DatabaseBackupValidator) ValidateUpdate(_ context.Context, old, backup *databasesv1.DatabaseBackup) (warnings admission.Warnings, err error) {
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
func (*DatabaseBackupValidator) ValidateDelete(context.Context, *databasesv1.DatabaseBackup) (admission.Warnings, error) {
	return nil, nil
}

// judgeSchedule refuses a schedule that the operator could not follow: a number out of range, a date that no year
// has, a zone that nobody knows. For that a calendar and a list of zones are needed, which CEL does not have.
func judgeSchedule(backup *databasesv1.DatabaseBackup) error {
	_, err := schedule.Parse(backup.Spec.Schedule, backup.Spec.TimeZone)
	if fault, wrong := errors.AsType[*schedule.Fault](err); wrong {
		return apierrors.NewInvalid(controller.BackupKind.GroupKind(), backup.Name, field.ErrorList{
			field.Invalid(field.NewPath("spec", fault.Field), fault.Value, fault.Why)})
	}
	return err
}

// incomplete says what a DatabaseBackup lacks: it is accepted, and never runs like that. Clients show about 120
// characters of a warning, so the fields are named from the spec on.
func (v *DatabaseBackupValidator) incomplete(backup *databasesv1.DatabaseBackup) admission.Warnings {
	fields := controller.Missing(backup, v.Image)
	if len(fields) == 0 {
		return nil
	}
	return admission.Warnings{"nothing runs until the spec has " + strings.ReplaceAll(strings.Join(fields, ", "), "spec.", "")}
}

// deletes says what deletionPolicy Delete means.
func deletes(backup *databasesv1.DatabaseBackup) admission.Warnings {
	if backup.Spec.DeletionPolicy != databasesv1.DeleteFiles {
		return nil
	}
	return admission.Warnings{"spec.deletionPolicy is Delete: when the DatabaseBackup is deleted, the files go with it"}
}
