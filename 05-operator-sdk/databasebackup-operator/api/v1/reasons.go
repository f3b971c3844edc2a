package v1

// Condition types.
const (
	// ConditionReady is True while nothing keeps the next backup from being taken.
	ConditionReady = "Ready"
	// ConditionTargetReady is True while the StatefulSet has a ready pod and the Service exists.
	ConditionTargetReady = "TargetReady"
	// ConditionBackupSucceeded reports how the last run ended.
	ConditionBackupSucceeded = "BackupSucceeded"
	// ConditionRestoreVerified is True when the last backup was restored into a scratch server, and was right. It is False
	// with evidence against the dump, and Unknown when the backup was not verified, or could not be.
	ConditionRestoreVerified = "RestoreVerified"
	// ConditionSucceeded reports how a DatabaseRestore ended.
	ConditionSucceeded = "Succeeded"
)

// Reasons of conditions and events, beside those that pgbackup gives its runs.
const (
	// ReasonScheduled: the next run is known, and nothing blocks it.
	ReasonScheduled = "Scheduled"
	// ReasonRunMissed: a run did not start within startingDeadlineSeconds; the next one is known.
	ReasonRunMissed = "RunMissed"
	// ReasonSuspended: spec.suspend is true.
	ReasonSuspended = "Suspended"
	// ReasonIncompleteSpec: fields that are needed to run are missing.
	ReasonIncompleteSpec = "IncompleteSpec"
	// ReasonInvalidSchedule: the schedule or the time zone cannot be read, or the date never comes.
	ReasonInvalidSchedule = "InvalidSchedule"
	// ReasonImageNotAllowed: the operator's option --allowed-images does not name the image.
	ReasonImageNotAllowed = "ImageNotAllowed"
	// ReasonServiceNotAllowed: the operator's option --allowed-services does not name the Service.
	ReasonServiceNotAllowed = "ServiceNotAllowed"
	// ReasonDeleting: the DatabaseBackup is being deleted, and its files are.
	ReasonDeleting = "Deleting"
	// ReasonDeleteFailed: the files could not be deleted.
	ReasonDeleteFailed = "DeleteFailed"
	// ReasonFilesAbandoned: the finalizer was removed, because there is no volume whose files could be deleted.
	ReasonFilesAbandoned = "FilesAbandoned"

	// ReasonTargetReady: the StatefulSet has a ready pod and the Service exists.
	ReasonTargetReady = "TargetReady"
	// ReasonTargetNotFound: the StatefulSet or the Service does not exist.
	ReasonTargetNotFound = "TargetNotFound"
	// ReasonTargetNotReady: the StatefulSet has no ready pod.
	ReasonTargetNotReady = "TargetNotReady"

	// ReasonNeverRun: there was no run yet.
	ReasonNeverRun = "NeverRun"
	// ReasonRunning: the first run is in progress, or about to begin.
	ReasonRunning = "Running"
	// ReasonStarted: a Job was created.
	ReasonStarted = "Started"
	// ReasonReplaced: a Job was deleted for the run after it.
	ReasonReplaced = "Replaced"
	// ReasonResultMissing: the Job succeeded, but what it did could not be read. Whether there is a backup is not known.
	ReasonResultMissing = "ResultMissing"
	// ReasonJobDeleted: the Job vanished before its end was seen.
	ReasonJobDeleted = "JobDeleted"
	// ReasonJobNameTaken: a Job of that name exists and is not controlled by the object.
	ReasonJobNameTaken = "JobNameTaken"
	// ReasonJobRejected: the API server refuses the Job.
	ReasonJobRejected = "JobRejected"
	// ReasonDeadlineExceeded: the run took longer than activeDeadlineSeconds.
	ReasonDeadlineExceeded = "DeadlineExceeded"
	// ReasonJobFailed: the run failed, and nothing reports why.
	ReasonJobFailed = "JobFailed"
	// ReasonOutOfMemory: the container ran out of memory.
	ReasonOutOfMemory = "OutOfMemory"

	// ReasonPodRejected: the API server refuses the Job's pod: a quota, a policy.
	ReasonPodRejected = "PodRejected"
	// ReasonUnschedulable: no node takes the Job's pod.
	ReasonUnschedulable = "Unschedulable"
	// ReasonImageUnavailable: the image of the Job's pod cannot be pulled.
	ReasonImageUnavailable = "ImageUnavailable"
	// ReasonSecretNotFound: a Secret or a key of it that the Job's pod needs is not there.
	ReasonSecretNotFound = "SecretNotFound"

	// ReasonNotRestored: the last backup was not verified by restoring it.
	ReasonNotRestored = "NotRestored"
	// ReasonRestoreVerified: the last backup was verified by restoring it.
	ReasonRestoreVerified = "RestoreVerified"

	// ReasonDatabaseBackupNotFound: the DatabaseBackup of a DatabaseRestore does not exist. After ten minutes that is
	// for good.
	ReasonDatabaseBackupNotFound = "DatabaseBackupNotFound"
	// ReasonRestoring: the Job of a DatabaseRestore is about to be created, or runs.
	ReasonRestoring = "Restoring"
)
