package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// TriggerAnnotation requests a backup now, by a value that was not handled yet: a time, a ticket number. When the Job
// exists, the operator copies the value to status.lastHandledTrigger. The Job has the annotation too.
const TriggerAnnotation = "databases.test.io/trigger"

// FilesFinalizer keeps a DatabaseBackup with deletionPolicy Delete until its snapshots are gone.
const FilesFinalizer = "databases.test.io/files"

// MaxBackups is the number of backups that status lists: the newest backups. The repository may hold more.
const MaxBackups = 50

// ConcurrencyPolicy says what happens when a run is due and the previous run is still in progress.
//
// +kubebuilder:validation:Enum=Forbid;Replace
type ConcurrencyPolicy string

const (
	// ForbidConcurrent: the new run waits for the end of the previous run.
	ForbidConcurrent ConcurrencyPolicy = "Forbid"
	// ReplaceConcurrent: the new run stops and replaces the previous run.
	ReplaceConcurrent ConcurrencyPolicy = "Replace"
)

// DeletionPolicy says what happens to the snapshots when the DatabaseBackup is deleted.
//
// +kubebuilder:validation:Enum=Retain;Delete
type DeletionPolicy string

const (
	// RetainFiles: the snapshots stay where they are.
	RetainFiles DeletionPolicy = "Retain"
	// DeleteFiles: the snapshots are deleted before the DatabaseBackup.
	DeleteFiles DeletionPolicy = "Delete"
)

// VerificationMode says how a backup is verified.
//
// +kubebuilder:validation:Enum=None;Archive;Restore
type VerificationMode string

const (
	// VerifyNone: no backup is verified, so no backup counts as good.
	VerifyNone VerificationMode = "None"
	// VerifyArchive: the dump is read from the repository, and pg_restore reads all of it.
	VerifyArchive VerificationMode = "Archive"
	// VerifyRestore: the dump is read from the repository, and restored into a scratch server, where the query runs.
	VerifyRestore VerificationMode = "Restore"
)

// DatabaseBackupSpec says which database is backed up, when, where to, and what a backup must prove.
//
// The API server requires only databaseName, schedule and backupPath. The condition Ready, reason IncompleteSpec,
// reports which fields are missing for a run.
//
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.destination) || has(self.destination)",fieldPath=".destination",message="is immutable once it is set: make another DatabaseBackup"
type DatabaseBackupSpec struct {
	// databaseName is the name of the database: any name that PostgreSQL accepts. It never changes.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 63",message="must have at most 63 bytes: PostgreSQL cuts longer names"
	// +kubebuilder:validation:XValidation:rule="!self.matches('[\\\\x00-\\\\x1f\\\\x7f]')",message="must not contain control characters"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable: make another DatabaseBackup"
	// +operator-sdk:csv:customresourcedefinitions:type=spec
	DatabaseName string `json:"databaseName"`
	// schedule is when backups are taken: five fields of cron (minute, hour, day of month, month, day of
	// week), or @hourly, @daily, @midnight, @weekly, @monthly, @yearly, @annually. The zone is timeZone.
	// A date that never comes is reported in the condition Ready, reason InvalidSchedule.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="!self.contains('TZ=')",message="must not contain TZ= or CRON_TZ=: name the zone in spec.timeZone"
	// +kubebuilder:validation:XValidation:rule="self.contains('TZ=') || self.matches('^(@(hourly|daily|midnight|weekly|monthly|yearly|annually)|[^ @]+( +[^ ]+){4})$')",message="must be five fields of cron, as in '0 3 * * *', or @hourly, @daily, @midnight, @weekly, @monthly, @yearly, @annually"
	// +operator-sdk:csv:customresourcedefinitions:type=spec
	Schedule string `json:"schedule"`
	// backupPath is the absolute directory of the repository inside the volume. It never changes, because the operator
	// would no longer prune or delete the snapshots at the old place. The other destinations do not use it.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=400
	// +kubebuilder:validation:XValidation:rule="self.startsWith('/')",message="must be an absolute path, as in /backups/orders"
	// +kubebuilder:validation:XValidation:rule="!self.split('/').exists(part, part == '..')",message="must not contain the part '..': it would lead out of the volume"
	// +kubebuilder:validation:XValidation:rule="!self.matches('[\\\\x00-\\\\x1f\\\\x7f]')",message="must not contain control characters"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable: make another DatabaseBackup"
	// +operator-sdk:csv:customresourcedefinitions:type=spec
	BackupPath string `json:"backupPath"`

	// engine is the kind of database.
	//
	// +optional
	// +kubebuilder:validation:Enum=PostgreSQL
	// +kubebuilder:default=PostgreSQL
	// +operator-sdk:csv:customresourcedefinitions:type=spec
	Engine string `json:"engine,omitempty"`
	// targetRef says where the server is. Required to run.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec
	TargetRef *TargetReference `json:"targetRef,omitempty"`
	// auth says where the credentials are. Required to run.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec
	Auth *Auth `json:"auth,omitempty"`
	// image contains pgbackup and the PostgreSQL programs. Without it the operator uses its own default. The operator's
	// option --allowed-images must name any other image.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +operator-sdk:csv:customresourcedefinitions:type=spec
	Image string `json:"image,omitempty"`
	// destination is where the repository is, in which restic stores the backups. Required to run. Once it is set it
	// never changes, because the operator would no longer prune or delete the snapshots at the old place.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable once it is set: make another DatabaseBackup"
	// +operator-sdk:csv:customresourcedefinitions:type=spec
	Destination *Destination `json:"destination,omitempty"`
	// encryption says where the password of the repository is. Without it, the operator creates a Secret once, with a
	// random password, and never changes or deletes it: see status.encryptionSecretName.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec
	Encryption *Encryption `json:"encryption,omitempty"`

	// timeZone is the zone of the schedule and of the days in retention: a name of the IANA database, like
	// Europe/Berlin.
	//
	// +optional
	// +kubebuilder:default=UTC
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.lowerAscii() != 'local'",message="must not be Local: the zone would depend on the operator's pod"
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z][A-Za-z0-9_+/-]*$')",message="must be a name of the IANA database, like Europe/Berlin"
	// +operator-sdk:csv:customresourcedefinitions:type=spec
	TimeZone string `json:"timeZone,omitempty"`
	// suspend stops the schedule. A run in progress continues, and a trigger still starts a run.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec
	Suspend bool `json:"suspend,omitempty"`
	// immediate takes the first backup without waiting for the schedule.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec
	Immediate bool `json:"immediate,omitempty"`
	// startingDeadlineSeconds is how late a run may start. Without it, the latest missed run starts, however late it is.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=31536000
	// +operator-sdk:csv:customresourcedefinitions:type=spec
	StartingDeadlineSeconds *int64 `json:"startingDeadlineSeconds,omitempty"`
	// concurrencyPolicy says what happens when a run is due and the previous run is still in progress.
	//
	// +optional
	// +kubebuilder:default=Forbid
	// +operator-sdk:csv:customresourcedefinitions:type=spec
	ConcurrencyPolicy ConcurrencyPolicy `json:"concurrencyPolicy,omitempty"`

	// retention says which backups are kept. The newest verified backup is always kept.
	//
	// +optional
	// +kubebuilder:default={}
	// +operator-sdk:csv:customresourcedefinitions:type=spec
	Retention Retention `json:"retention,omitzero"`
	// verification says what a backup must prove.
	//
	// +optional
	// +kubebuilder:default={}
	// +operator-sdk:csv:customresourcedefinitions:type=spec
	Verification Verification `json:"verification,omitzero"`

	// JobLimits apply to the Jobs.
	JobLimits `json:",inline"`
	// successfulJobsHistoryLimit is the number of successful Jobs that are kept.
	//
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +operator-sdk:csv:customresourcedefinitions:type=spec
	SuccessfulJobsHistoryLimit *int32 `json:"successfulJobsHistoryLimit,omitempty"`
	// failedJobsHistoryLimit is the number of failed Jobs that are kept.
	//
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +operator-sdk:csv:customresourcedefinitions:type=spec
	FailedJobsHistoryLimit *int32 `json:"failedJobsHistoryLimit,omitempty"`
	// deletionPolicy says what happens to the snapshots when the DatabaseBackup is deleted.
	//
	// +optional
	// +kubebuilder:default=Retain
	// +operator-sdk:csv:customresourcedefinitions:type=spec
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
}

// JobLimits limit the tries, the time and the resources of a Job.
type JobLimits struct {
	// backoffLimit is how often a failed try is repeated.
	//
	// +optional
	// +kubebuilder:default=2
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10
	// +operator-sdk:csv:customresourcedefinitions:type=spec
	BackoffLimit *int32 `json:"backoffLimit,omitempty"`
	// activeDeadlineSeconds is how long a run may take, all tries together. Each try waits for the server, and for
	// another run that uses the same repository, until a minute before this deadline.
	//
	// +optional
	// +kubebuilder:default=3600
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=604800
	// +operator-sdk:csv:customresourcedefinitions:type=spec
	ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds,omitempty"`
	// resources are the resources of each container of the Job's pod; the containers run one after another. The limit of
	// ephemeral-storage is also the size of the scratch folder, which holds the dump and the restored database in
	// verification mode Restore: a pod that needs more is ended before it fills the node. Without this limit the size is
	// not bounded. A spec that sets resources replaces the whole default.
	//
	// +optional
	// +kubebuilder:default={requests: {cpu: "100m", memory: "256Mi", "ephemeral-storage": "1Gi"}, limits: {memory: "1Gi", "ephemeral-storage": "10Gi"}}
	// +operator-sdk:csv:customresourcedefinitions:type=spec
	Resources Resources `json:"resources,omitzero"`
}

// Resources are the requests and the limits of a container.
type Resources struct {
	// requests are reserved for the container.
	//
	// +optional
	Requests corev1.ResourceList `json:"requests,omitempty"`
	// limits are the most that the container may use.
	//
	// +optional
	Limits corev1.ResourceList `json:"limits,omitempty"`
}

// TargetReference says where a server is, and how the connection to it is protected.
type TargetReference struct {
	// name is the StatefulSet that runs the server.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be the name of a StatefulSet of this namespace: lower-case letters, digits and '-', with a letter or a digit at both ends"
	Name string `json:"name"`
	// serviceName is the Service of the server. By default it is the name of the StatefulSet. The host of the connection
	// is serviceName.namespace.svc. The operator's option --allowed-services may limit the choice.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be the name of a Service of this namespace: lower-case letters, digits and '-', with a letter or a digit at both ends"
	ServiceName string `json:"serviceName,omitempty"`
	// port is the port of the Service.
	//
	// +optional
	// +kubebuilder:default=5432
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`
	// tls says how the connection is protected.
	//
	// +optional
	// +kubebuilder:default={mode: prefer}
	TLS TLS `json:"tls,omitzero"`
}

// TLSMode is a mode of libpq, PostgreSQL's client library: its sslmode.
//
// +kubebuilder:validation:Enum=disable;prefer;require;verify-ca;verify-full
type TLSMode string

const (
	// TLSDisable never uses TLS.
	TLSDisable TLSMode = "disable"
	// TLSPrefer uses TLS when the server offers it.
	TLSPrefer TLSMode = "prefer"
	// TLSRequire uses TLS or fails. It does not check the server's certificate.
	TLSRequire TLSMode = "require"
	// TLSVerifyCA demands a certificate that the authority in ca has signed.
	TLSVerifyCA TLSMode = "verify-ca"
	// TLSVerifyFull demands in addition that the certificate is for the host serviceName.namespace.svc.
	TLSVerifyFull TLSMode = "verify-full"
)

// TLS says how a connection is protected.
//
// +kubebuilder:validation:XValidation:rule="has(self.ca) == (self.mode in ['verify-ca', 'verify-full'])",fieldPath=".ca",message="is required in the modes verify-ca and verify-full, and in no other mode"
type TLS struct {
	// mode is disable, prefer, require, verify-ca or verify-full, with the meaning of PostgreSQL's sslmode. Only
	// verify-full prevents an attacker between the Job and the server from reading the connection.
	//
	// +optional
	// +kubebuilder:default=prefer
	Mode TLSMode `json:"mode,omitempty"`
	// ca is where the certificates of the authorities are, in PEM.
	//
	// +optional
	CA *CAReference `json:"ca,omitempty"`
}

// CAReference says where the certificates of the authorities are: exactly one of its fields is set.
//
// +kubebuilder:validation:XValidation:rule="has(self.secretKeyRef) != has(self.configMapKeyRef)",message="must have exactly one of secretKeyRef and configMapKeyRef"
type CAReference struct {
	// secretKeyRef is the key of a Secret in the same namespace.
	//
	// +optional
	SecretKeyRef *KeyReference `json:"secretKeyRef,omitempty"`
	// configMapKeyRef is the key of a ConfigMap in the same namespace.
	//
	// +optional
	ConfigMapKeyRef *KeyReference `json:"configMapKeyRef,omitempty"`
}

// Auth says where the credentials are. The operator never reads them: the kubelet gives them to the Job's pod.
type Auth struct {
	// usernameSecretRef is the key of a Secret that holds the user's name. Required to run.
	//
	// +optional
	UsernameSecretRef *KeyReference `json:"usernameSecretRef,omitempty"`
	// passwordSecretRef is the key of a Secret that holds the password. Required to run.
	//
	// +optional
	PasswordSecretRef *KeyReference `json:"passwordSecretRef,omitempty"`
}

// KeyReference names a key of an object in the same namespace.
type KeyReference struct {
	// name is the name of the object.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// key is the key in it.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key"`
}

// SecretReference names a Secret in the same namespace.
type SecretReference struct {
	// name is the name of the Secret.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// Encryption says where the password of a repository is.
type Encryption struct {
	// passwordSecretRef is the key of a Secret that holds the password. Without this password the backups are lost.
	//
	// +required
	PasswordSecretRef KeyReference `json:"passwordSecretRef"`
}

// Destination is where a repository of restic is: exactly one of its fields is set.
//
// +kubebuilder:validation:XValidation:rule="[has(self.persistentVolumeClaim), has(self.s3), has(self.rest)].filter(x, x).size() == 1",message="must have exactly one of persistentVolumeClaim, s3 and rest"
type Destination struct {
	// persistentVolumeClaim is a claim in the same namespace. The repository is in the directory backupPath of its volume.
	//
	// +optional
	PersistentVolumeClaim *ClaimReference `json:"persistentVolumeClaim,omitempty"`
	// s3 is a bucket of a server that speaks the protocol of Amazon S3.
	//
	// +optional
	S3 *S3Destination `json:"s3,omitempty"`
	// rest is a server that speaks the REST protocol of restic, such as rest-server.
	//
	// +optional
	REST *RESTDestination `json:"rest,omitempty"`
}

// ClaimReference names a PersistentVolumeClaim in the same namespace.
type ClaimReference struct {
	// claimName is the name of the PersistentVolumeClaim.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ClaimName string `json:"claimName"`
}

// S3Destination is a folder in a bucket.
//
// +kubebuilder:validation:XValidation:rule="!has(self.caSecretRef) || self.endpoint.startsWith('https://')",fieldPath=".caSecretRef",message="needs an endpoint that begins with https://: without TLS there is no certificate to check"
type S3Destination struct {
	// endpoint is the URL of the server. With http:// everybody on the way sees which requests are sent; the backups
	// themselves are encrypted.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=300
	// +kubebuilder:validation:XValidation:rule="self.matches('^https?://([A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?|[[][0-9A-Fa-f:.]+[]])(:[0-9]{1,5})?$')",message="must be https:// or http://, a host and perhaps a port, as in https://s3.eu-central-1.amazonaws.com: without a path, and without a user or a password, which belong into the Secret of credentialsSecretRef"
	Endpoint string `json:"endpoint"`
	// bucket is the name of the bucket. The bucket must exist.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$')",message="must be a name of a bucket: 3 to 63 lower-case letters, digits, '.' and '-', with a letter or a digit at both ends"
	Bucket string `json:"bucket"`
	// prefix is the folder of the repository in the bucket. Without it, the repository is at the top of the bucket.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=400
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*$') && !self.split('/').exists(part, part in ['.', '..'])",message="must be parts of letters, digits, '.', '_' and '-', separated by '/', as in backups/orders: without '/' at the ends, and without the parts '.' and '..'"
	Prefix string `json:"prefix,omitempty"`
	// region is the region of the bucket. Most servers other than Amazon's need none.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9-]+$')",message="must be the name of a region, like eu-central-1"
	Region string `json:"region,omitempty"`
	// credentialsSecretRef is a Secret with the keys AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.
	//
	// +required
	CredentialsSecretRef SecretReference `json:"credentialsSecretRef"`
	// caSecretRef is the key of a Secret that holds the certificates of the authorities, in PEM. Without it, those of the
	// image count.
	//
	// +optional
	CASecretRef *KeyReference `json:"caSecretRef,omitempty"`
}

// RESTDestination is a repository on a REST server of restic.
//
// +kubebuilder:validation:XValidation:rule="!has(self.caSecretRef) || self.url.startsWith('https://')",fieldPath=".caSecretRef",message="needs a url that begins with https://: without TLS there is no certificate to check"
type RESTDestination struct {
	// url is the URL of the repository. With http:// everybody on the way sees the password of the server; the backups
	// themselves are encrypted.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=700
	// +kubebuilder:validation:XValidation:rule="self.matches('^https?://([A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?|[[][0-9A-Fa-f:.]+[]])(:[0-9]{1,5})?(/[A-Za-z0-9._-]+)*/?$') && !self.split('/').exists(part, part in ['.', '..'])",message="must be https:// or http://, a host, perhaps a port and a path, as in https://backups.example.com:8000/orders/: without a user or a password, which belong into the Secret of credentialsSecretRef"
	URL string `json:"url"`
	// credentialsSecretRef is a Secret with the keys username and password. Without it, the server must ask for none.
	//
	// +optional
	CredentialsSecretRef *SecretReference `json:"credentialsSecretRef,omitempty"`
	// caSecretRef is the key of a Secret that holds the certificates of the authorities, in PEM. Without it, those of the
	// image count.
	//
	// +optional
	CASecretRef *KeyReference `json:"caSecretRef,omitempty"`
}

// Retention says which backups are kept: each backup that one of the rules keeps, and the newest verified backup. A run
// whose backup does not pass its verification removes nothing.
//
// +kubebuilder:validation:XValidation:rule="!has(self.keepLast) || self.keepLast + self.keepDaily + self.keepWeekly + self.keepMonthly + self.keepWithinDays > 0",message="must keep something: set keepLast, keepDaily, keepWeekly, keepMonthly or keepWithinDays"
type Retention struct {
	// keepLast is the number of newest backups that are kept.
	//
	// +optional
	// +kubebuilder:default=7
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	KeepLast *int32 `json:"keepLast,omitempty"`
	// keepDaily is the number of days whose newest backup is kept.
	//
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	KeepDaily int32 `json:"keepDaily,omitempty"`
	// keepWeekly is the number of weeks whose newest backup is kept.
	//
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	KeepWeekly int32 `json:"keepWeekly,omitempty"`
	// keepMonthly is the number of months whose newest backup is kept.
	//
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	KeepMonthly int32 `json:"keepMonthly,omitempty"`
	// keepWithinDays is the age in days up to which every backup is kept, counted from the newest one.
	//
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=36500
	KeepWithinDays int32 `json:"keepWithinDays,omitempty"`
	// maxAgeDays is the age in days at which a backup is removed, even if other rules keep it; 0 means never.
	//
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=36500
	MaxAgeDays int32 `json:"maxAgeDays,omitempty"`
}

// Verification says what a backup must prove.
//
// +kubebuilder:validation:XValidation:rule="!has(self.query) || self.mode == 'Restore'",fieldPath=".query",message="needs mode Restore: only there is a server to ask"
type Verification struct {
	// mode is None, Archive (pg_restore reads the dump) or Restore (restored into a scratch server).
	//
	// +optional
	// +kubebuilder:default=Archive
	Mode VerificationMode `json:"mode,omitempty"`
	// query is SQL that runs in the restored database: its first value must not be false, NULL, empty or 0.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +kubebuilder:validation:XValidation:rule="!self.matches('^\\\\s*\\\\\\\\')",message="must not begin with a backslash: one SQL query, not a command of psql"
	Query string `json:"query,omitempty"`
}

// DatabaseBackupStatus is the state that the operator observed.
type DatabaseBackupStatus struct {
	// conditions are Ready, TargetReady, BackupSucceeded and RestoreVerified.
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
	// inProgress is true while the Job in activeJob runs.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status
	InProgress bool `json:"inProgress"`
	// activeJob is the Job that runs, or is about to be created.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status
	ActiveJob string `json:"activeJob,omitempty"`
	// lastJob is the Job that ended last.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status
	LastJob string `json:"lastJob,omitempty"`
	// lastBackupTime is when the last successful run was complete.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status
	LastBackupTime *metav1.Time `json:"lastBackupTime,omitempty"`
	// lastScheduleTime is the time of the schedule that was handled last, successfully or not. A missed time was not
	// handled.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status
	LastScheduleTime *metav1.Time `json:"lastScheduleTime,omitempty"`
	// nextScheduleTime is when the next run of the schedule is due. It is empty when there is none, or the schedule is
	// suspended.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status
	NextScheduleTime *metav1.Time `json:"nextScheduleTime,omitempty"`
	// lastVerifiedTime is when a backup last passed its verification.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status
	LastVerifiedTime *metav1.Time `json:"lastVerifiedTime,omitempty"`
	// lastHandledTrigger is the value of the annotation databases.test.io/trigger that was handled last.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status
	LastHandledTrigger string `json:"lastHandledTrigger,omitempty"`
	// encryptionSecretName is the Secret that the operator creates for the password of the repository, in its key
	// password, when spec.encryption is missing. Keep a copy outside of the cluster: without it the backups are lost.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status
	EncryptionSecretName string `json:"encryptionSecretName,omitempty"`
	// backups are the newest backups in the repository, as the last run left them, newest first. Dumps of the format
	// that the operator wrote before restic, which lie on the volume, are listed with their path.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=50
	// +operator-sdk:csv:customresourcedefinitions:type=status
	Backups []Backup `json:"backups,omitempty"`
}

// Backup is one backup in the repository.
type Backup struct {
	// name is the name of the Job that took the backup.
	//
	// +required
	Name string `json:"name"`
	// snapshot is the id of the snapshot in the repository.
	//
	// +optional
	Snapshot string `json:"snapshot,omitempty"`
	// path is set for a dump of the older format: its file, from the root of the volume. Nothing prunes it, and a user
	// restores it with pg_restore.
	//
	// +optional
	Path string `json:"path,omitempty"`
	// size is the size of the dump in bytes.
	//
	// +optional
	Size int64 `json:"size,omitempty"`
	// stored is how many bytes the backup added to the repository.
	//
	// +optional
	Stored int64 `json:"stored,omitempty"`
	// startTime is when the dump began.
	//
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// completionTime is when the dump was complete.
	//
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
	// serverVersion is the version of the server that was dumped.
	//
	// +optional
	ServerVersion string `json:"serverVersion,omitempty"`
	// verified is the strongest verification that passed; None when none passed.
	//
	// +optional
	Verified VerificationMode `json:"verified,omitempty"`
	// verifiedTime is when that verification passed.
	//
	// +optional
	VerifiedTime *metav1.Time `json:"verifiedTime,omitempty"`
}

// DatabaseBackup takes backups of one database on a schedule, verifies and prunes them.
//
// A rule of this type is not ratcheted, because a finalizer that is removed changes metadata. A rule that does not ask
// for oldSelf would keep an object that is older than the rule from being deleted.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=databasebackups,singular=databasebackup,shortName=dbb
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name=Database,type=string,JSONPath=`.spec.databaseName`,description="The name of the database."
// +kubebuilder:printcolumn:name=Schedule,type=string,JSONPath=`.spec.schedule`,description="When backups are taken."
// +kubebuilder:printcolumn:name=Last Backup,type=date,JSONPath=`.status.lastBackupTime`,description="The time since the last successful backup."
// +kubebuilder:printcolumn:name=Succeeded,type=string,JSONPath=`.status.conditions[?(@.type=="BackupSucceeded")].status`,description="Whether the last backup succeeded. Unknown before the first one, while one runs, and without a result."
// +kubebuilder:printcolumn:name=Ready,type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether nothing keeps the next backup from being taken."
// +kubebuilder:printcolumn:name=Verified,type=date,JSONPath=`.status.lastVerifiedTime`,description="The time since a backup passed its verification."
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`,description="The time since the DatabaseBackup was created."
// +kubebuilder:validation:XValidation:optionalOldSelf=true,rule="oldSelf.hasValue() || self.metadata.name.matches('^[a-z0-9]([-a-z0-9]{0,50}[a-z0-9])?$')",fieldPath=`.metadata`,message="metadata.name must have at most 52 characters, only lower-case letters, digits and '-', with a letter or a digit at both ends: Jobs are named <name>-<minute>, and have 63"
// +operator-sdk:csv:customresourcedefinitions:displayName="Database Backup",resources={{Job,v1,""}}
type DatabaseBackup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says which database is backed up, when, where to, and what a backup must prove.
	//
	// +required
	Spec DatabaseBackupSpec `json:"spec"`
	// status is what the operator observed. Only the operator writes it.
	//
	// +optional
	Status DatabaseBackupStatus `json:"status,omitzero"`
}

// DatabaseBackupList is a list of DatabaseBackups.
//
// +kubebuilder:object:root=true
type DatabaseBackupList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []DatabaseBackup `json:"items"`
}

func init() {
	SchemeBuilder.Register(func(scheme *runtime.Scheme) error {
		scheme.AddKnownTypes(GroupVersion, &DatabaseBackup{}, &DatabaseBackupList{})
		return nil
	})
}
