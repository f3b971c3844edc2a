package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// DatabaseRestoreSpec says which backup is restored, and where to. It never changes: another restore is
// another DatabaseRestore.
type DatabaseRestoreSpec struct {
	// databaseBackupName is the DatabaseBackup, in the same namespace, whose volume holds the backup. Image, path,
	// target and credentials default to those of the DatabaseBackup. If the DatabaseBackup does not exist within ten
	// minutes, the restore fails.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=52
	// +operator-sdk:csv:customresourcedefinitions:type=spec
	DatabaseBackupName string `json:"databaseBackupName"`
	// backupName is the backup, as status.backups of the DatabaseBackup names it.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be a name from status.backups of the DatabaseBackup, like orders-29012345"
	// +operator-sdk:csv:customresourcedefinitions:type=spec
	BackupName string `json:"backupName"`
	// backupOwnerUID is the UID of a DatabaseBackup that was deleted and retained its files, to restore one of its
	// backups. The folder with the files is named after this UID.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9A-Za-z][0-9A-Za-z-]*$')",message="must be a UID: letters, digits and '-'"
	// +operator-sdk:csv:customresourcedefinitions:type=spec
	BackupOwnerUID string `json:"backupOwnerUID,omitempty"`
	// databaseName is the database to restore into, by default the database that was dumped. It must not be postgres,
	// template0 or template1, which the server itself needs. A database that does not exist is created. The new
	// database gets the owner, the grants, the settings (ALTER DATABASE … SET), the connection limit and the comment of
	// the backup. An existing database keeps its own properties, if it has any or belongs to another user than the user
	// of the restore; properties that an earlier restore took from a backup do not count. The message of the condition
	// Succeeded lists the properties that could not be restored, such as the grants of a role that does not exist.
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
	// overwrite allows the restore to replace a database that is not empty. Without it, such a database is refused with
	// TargetNotEmpty and nothing is changed, even if each table has as many rows as the backup. The only exception is
	// a database that an earlier pod of the same DatabaseRestore has restored: then the restore has succeeded, and
	// nothing is changed again.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec
	Overwrite bool `json:"overwrite,omitempty"`
	// JobLimits apply to the Job.
	JobLimits `json:",inline"`
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
	// rows is the number of rows in these tables.
	//
	// +optional
	Rows int64 `json:"rows"`
	// replaced is true when the restore dropped an old database.
	//
	// +optional
	Replaced bool `json:"replaced"`
}

// DatabaseRestore restores one backup, once.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=databaserestores,singular=databaserestore,shortName=dbr
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name=Backup,type=string,JSONPath=`.spec.backupName`,description="The backup that is restored."
// +kubebuilder:printcolumn:name=Succeeded,type=string,JSONPath=`.status.conditions[?(@.type=="Succeeded")].status`,description="Unknown while it waits or works, then True or False."
// +kubebuilder:printcolumn:name=Reason,type=string,JSONPath=`.status.conditions[?(@.type=="Succeeded")].reason`,description="Why."
// +kubebuilder:printcolumn:name=Completed,type=date,JSONPath=`.status.completionTime`,description="The time since it ended."
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`,description="The time since the DatabaseRestore was created."
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || self.metadata.name.matches('^[a-z0-9]([-a-z0-9]{0,50}[a-z0-9])?$')",optionalOldSelf=true,fieldPath=`.metadata`,message="metadata.name must have at most 52 characters, only lower-case letters, digits and '-', with a letter or a digit at both ends: its Job is named <name>-restore"
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
