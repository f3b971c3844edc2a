package v1

// Condition types.
const (
	// ConditionReady is True while nothing prevents the next backup.
	ConditionReady = "Ready"
	// ConditionTargetReady is True while the StatefulSet has a ready pod and the Service exists.
	ConditionTargetReady = "TargetReady"
	// ConditionBackupSucceeded reports how the last run ended.
	ConditionBackupSucceeded = "BackupSucceeded"
	// ConditionRestoreVerified is True when the last backup was restored into a scratch server, and passed its verification.
	// It is False with evidence against the dump, and Unknown when the backup was not verified, or could not be
	// verified.
	ConditionRestoreVerified = "RestoreVerified"
	// ConditionSucceeded reports how a DatabaseRestore ended.
	ConditionSucceeded = "Succeeded"
)

// Reasons of conditions and events, in addition to the reasons that pgbackup gives its runs.
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
	// ReasonStoreNotAllowed: the operator's option --allowed-stores does not name the host of the destination.
	ReasonStoreNotAllowed = "StoreNotAllowed"
	// ReasonEarlierPodRuns: a pod of an earlier run has not ended, so the next Job is not created yet.
	ReasonEarlierPodRuns = "EarlierPodRuns"
	// ReasonDeleting: the DatabaseBackup and its snapshots are being deleted.
	ReasonDeleting = "Deleting"
	// ReasonDeleteFailed: the snapshots could not be deleted.
	ReasonDeleteFailed = "DeleteFailed"
	// ReasonFilesAbandoned: the finalizer was removed, because the volume is gone and its snapshots cannot be deleted.
	ReasonFilesAbandoned = "FilesAbandoned"

	// ReasonTargetReady: the StatefulSet has a ready pod and the Service exists.
	ReasonTargetReady = "TargetReady"
	// ReasonTargetNotFound: the StatefulSet or the Service does not exist.
	ReasonTargetNotFound = "TargetNotFound"
	// ReasonTargetNotReady: the StatefulSet has no ready pod.
	ReasonTargetNotReady = "TargetNotReady"

	// ReasonNeverRun: no run has started yet.
	ReasonNeverRun = "NeverRun"
	// ReasonRunning: the first run is in progress, or about to begin.
	ReasonRunning = "Running"
	// ReasonStarted: a Job was created.
	ReasonStarted = "Started"
	// ReasonReplaced: a Job was deleted because the next run replaces it.
	ReasonReplaced = "Replaced"
	// ReasonResultMissing: the Job succeeded, but its result could not be read. It is not known whether a backup exists.
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
	// ReasonSecretNotFound: a Secret that the Job's pod needs, or a key in it, does not exist.
	ReasonSecretNotFound = "SecretNotFound"

	// ReasonNotRestored: the last backup was not verified by restoring it.
	ReasonNotRestored = "NotRestored"
	// ReasonRestoreVerified: the last backup was verified by restoring it.
	ReasonRestoreVerified = "RestoreVerified"

	// ReasonDatabaseBackupNotFound: the DatabaseBackup of a DatabaseRestore does not exist. After ten minutes the
	// restore fails for good.
	ReasonDatabaseBackupNotFound = "DatabaseBackupNotFound"
	// ReasonRestoring: the Job of a DatabaseRestore is about to be created, or runs.
	ReasonRestoring = "Restoring"
)
