package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// DatabaseRestoreSpec says which backup is restored, and where to: a backup of a DatabaseBackup by its name, or a
// snapshot of a repository that no DatabaseBackup describes. It never changes: another restore is another
// DatabaseRestore.
//
// +kubebuilder:validation:XValidation:rule="has(self.databaseBackupName) != has(self.repository)",message="must have exactly one of databaseBackupName and repository"
// +kubebuilder:validation:XValidation:rule="has(self.databaseBackupName) == has(self.backupName)",fieldPath=".backupName",message="goes with databaseBackupName: set both, or neither of them"
// +kubebuilder:validation:XValidation:rule="has(self.repository) == has(self.snapshot)",fieldPath=".snapshot",message="goes with repository: set both, or neither of them"
// +kubebuilder:validation:XValidation:rule="!has(self.repository) || has(self.targetRef)",fieldPath=".targetRef",message="is required with repository: no DatabaseBackup says where the server is"
// +kubebuilder:validation:XValidation:rule="!has(self.repository) || has(self.auth)",fieldPath=".auth",message="is required with repository: no DatabaseBackup says where the credentials are"
type DatabaseRestoreSpec struct {
	// databaseBackupName is the DatabaseBackup, in the same namespace, whose repository holds the backup. Image,
	// repository, target and credentials default to those of the DatabaseBackup. If the DatabaseBackup does not exist
	// within ten minutes, the restore fails.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=52
	// +operator-sdk:csv:customresourcedefinitions:type=spec
	DatabaseBackupName string `json:"databaseBackupName,omitempty"`
	// backupName is the backup, as status.backups of the DatabaseBackup names it.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be a name from status.backups of the DatabaseBackup, like orders-29012345"
	// +operator-sdk:csv:customresourcedefinitions:type=spec
	BackupName string `json:"backupName,omitempty"`
	// repository is where a backup is that no DatabaseBackup of this cluster describes, for example because the cluster
	// that took it is gone.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec
	Repository *Repository `json:"repository,omitempty"`
	// snapshot is the id of the snapshot in the repository, as `restic snapshots` lists it.
	//
	// +optional
	// +kubebuilder:validation:MinLength=8
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9a-f]+$')",message="must be the id of a snapshot: 8 to 64 of the digits 0-9 and a-f, like 1a2b3c4d"
	// +operator-sdk:csv:customresourcedefinitions:type=spec
	Snapshot string `json:"snapshot,omitempty"`
	// databaseName is the database to restore into, by default the database that was dumped. It must not be postgres,
	// template0 or template1, which the server itself needs. A database that does not exist is created. A database that
	// is not empty is refused with TargetNotEmpty, and nothing is changed: restore into a new database, and rename it. The
	// only exception is a database that an earlier pod of the same DatabaseRestore has restored: then the restore has
	// succeeded, and nothing is changed again.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 63",message="must have at most 63 bytes: PostgreSQL cuts longer names"
	// +kubebuilder:validation:XValidation:rule="!(self in ['postgres', 'template0', 'template1'])",message="must not be postgres, template0 or template1, which the server itself needs: name another database"
	// +kubebuilder:validation:XValidation:rule="!self.matches('[\\\\x00-\\\\x1f\\\\x7f]')",message="must not contain control characters"
	// +operator-sdk:csv:customresourcedefinitions:type=spec
	DatabaseName string `json:"databaseName,omitempty"`
	// targetRef says where the server is. The default is the targetRef of the DatabaseBackup.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec
	TargetRef *TargetReference `json:"targetRef,omitempty"`
	// auth says where the credentials are. The default is the auth of the DatabaseBackup.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="has(self.usernameSecretRef) && has(self.passwordSecretRef)",message="must have usernameSecretRef and passwordSecretRef, or be left out"
	// +operator-sdk:csv:customresourcedefinitions:type=spec
	Auth *Auth `json:"auth,omitempty"`
	// JobLimits apply to the Job.
	JobLimits `json:",inline"`
}

// Repository says where a repository of restic is, and where its password is.
//
// +kubebuilder:validation:XValidation:rule="has(self.backupPath) == has(self.destination.persistentVolumeClaim)",fieldPath=".backupPath",message="goes with destination.persistentVolumeClaim: set both, or neither of them"
type Repository struct {
	// destination is where the repository is.
	//
	// +required
	Destination Destination `json:"destination"`
	// backupPath is the absolute directory of the repository inside the volume.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=400
	// +kubebuilder:validation:XValidation:rule="self.startsWith('/') && !self.split('/').exists(part, part == '..')",message="must be an absolute path without the part '..', as in /backups/orders"
	// +kubebuilder:validation:XValidation:rule="!self.matches('[\\x00-\\x1f\\x7f]')",message="must not contain control characters"
	BackupPath string `json:"backupPath,omitempty"`
	// encryption says where the password of the repository is.
	//
	// +required
	Encryption Encryption `json:"encryption"`
}

// DatabaseRestoreStatus is the state that the operator observed.
type DatabaseRestoreStatus struct {
	// conditions has Succeeded: Unknown while it waits or works, then True or False for good.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +operator-sdk:csv:customresourcedefinitions:type=status,xDescriptors="urn:alm:descriptor:io.kubernetes.conditions"
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// observedGeneration is the generation of the spec that this status describes.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// jobName is the Job of the restore, which exists or is about to be created. A restore never has a second Job.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status
	JobName string `json:"jobName,omitempty"`
	// inProgress is true while the Job runs.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status
	InProgress bool `json:"inProgress"`
	// startTime is when the operator first saw the Job.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// completionTime is when the restore ended, successfully or not.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
	// restored describes the restored database.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status
	Restored *Restored `json:"restored,omitempty"`
}

// Restored describes a restored database.
type Restored struct {
	// database is the name of the restored database.
	//
	// +optional
	Database string `json:"database,omitempty"`
	// tables is the number of tables in the database.
	//
	// +optional
	Tables int64 `json:"tables"`
	// leftOut are the objects of the backup that were not restored, because they act on other systems or name roles: event
	// triggers, publications, subscriptions, user mappings, policies. Owners and grants are never restored.
	//
	// +optional
	// +listType=atomic
	LeftOut []string `json:"leftOut,omitempty"`
}

// DatabaseRestore restores one backup, once.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=databaserestores,singular=databaserestore,shortName=dbr
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name=Backup,type=string,JSONPath=`.spec.backupName`,description="The backup that is restored."
// +kubebuilder:printcolumn:name=Snapshot,type=string,JSONPath=`.spec.snapshot`,description="The snapshot that is restored from a repository."
// +kubebuilder:printcolumn:name=Succeeded,type=string,JSONPath=`.status.conditions[?(@.type=="Succeeded")].status`,description="Unknown while it waits or works, then True or False."
// +kubebuilder:printcolumn:name=Reason,type=string,JSONPath=`.status.conditions[?(@.type=="Succeeded")].reason`,description="Why."
// +kubebuilder:printcolumn:name=Completed,type=date,JSONPath=`.status.completionTime`,description="The time since it ended."
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`,description="The time since the DatabaseRestore was created."
// +kubebuilder:validation:XValidation:optionalOldSelf=true,rule="oldSelf.hasValue() || self.metadata.name.matches('^[a-z0-9]([-a-z0-9]{0,50}[a-z0-9])?$')",fieldPath=`.metadata`,message="metadata.name must have at most 52 characters, only lower-case letters, digits and '-', with a letter or a digit at both ends: its Job is named <name>-restore"
// +operator-sdk:csv:customresourcedefinitions:displayName="Database Restore",resources={{Job,v1,""}}
type DatabaseRestore struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says which backup is restored, and where to.
	//
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable: make another DatabaseRestore"
	Spec DatabaseRestoreSpec `json:"spec"`
	// status is what the operator observed. Only the operator writes it.
	//
	// +optional
	Status DatabaseRestoreStatus `json:"status,omitzero"`
}

// DatabaseRestoreList is a list of DatabaseRestores.
//
// +kubebuilder:object:root=true
type DatabaseRestoreList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []DatabaseRestore `json:"items"`
}

func init() {
	SchemeBuilder.Register(func(scheme *runtime.Scheme) error {
		scheme.AddKnownTypes(GroupVersion, &DatabaseRestore{}, &DatabaseRestoreList{})
		return nil
	})
}
