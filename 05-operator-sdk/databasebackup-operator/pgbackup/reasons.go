package main

import (
	"errors"
	"fmt"
	"strings"
)

// Reason says in one word how a run ended. It can be the reason of a condition.
type Reason string

// Reasons of runs.
const (
	ReasonBackupSucceeded    Reason = "BackupSucceeded"
	ReasonAlreadyComplete    Reason = "AlreadyComplete" // the snapshot existed; nothing was dumped
	ReasonVerificationPassed Reason = "VerificationPassed"
	ReasonFinished           Reason = "Finished"
	ReasonRestoreSucceeded   Reason = "RestoreSucceeded"
	ReasonDeleteSucceeded    Reason = "DeleteSucceeded"

	ReasonInvalidSettings         Reason = "InvalidSettings"
	ReasonSecretNotFound          Reason = "SecretNotFound"
	ReasonToolMissing             Reason = "ToolMissing"
	ReasonInterrupted             Reason = "Interrupted"
	ReasonFailed                  Reason = "Failed"
	ReasonTargetNotReady          Reason = "TargetNotReady"
	ReasonAuthenticationFailed    Reason = "AuthenticationFailed"
	ReasonTLSFailed               Reason = "TLSFailed"
	ReasonDatabaseNotFound        Reason = "DatabaseNotFound"
	ReasonPermissionDenied        Reason = "PermissionDenied"
	ReasonVersionMismatch         Reason = "VersionMismatch"
	ReasonDumpFailed              Reason = "DumpFailed"
	ReasonRepositoryUnreachable   Reason = "RepositoryUnreachable"
	ReasonRepositoryRefused       Reason = "RepositoryRefused"
	ReasonRepositoryPasswordWrong Reason = "RepositoryPasswordWrong"
	ReasonRepositoryMissing       Reason = "RepositoryMissing"
	ReasonRepositoryLocked        Reason = "RepositoryLocked"
	ReasonRepositoryDamaged       Reason = "RepositoryDamaged"
	ReasonRepositoryFull          Reason = "RepositoryFull"
	ReasonSnapshotNotFound        Reason = "SnapshotNotFound"
	ReasonArchiveUnreadable       Reason = "ArchiveUnreadable" // the only evidence against a dump
	ReasonScratchFailed           Reason = "ScratchFailed"
	ReasonScratchRestoreFailed    Reason = "ScratchRestoreFailed"
	ReasonQueryInvalid            Reason = "QueryInvalid"
	ReasonQueryFailed             Reason = "QueryFailed"
	ReasonRestoreFailed           Reason = "RestoreFailed"
	ReasonTargetNotEmpty          Reason = "TargetNotEmpty"
	ReasonRolesMissing            Reason = "RolesMissing"
)

// Exit codes of the program. Go uses 2 after a panic.
const (
	exitFailed      = 1 // another try may succeed
	exitFinal       = 3 // another try would fail in the same way
	exitNotVerified = 4 // nothing bad is known about the dump, but it could not be verified
)

// failures are the sentences and the exit codes of failures. The code is exitFailed where none is given.
var failures = map[Reason]struct {
	sentence string
	code     int
}{
	ReasonInvalidSettings:         {"a setting is wrong", exitFinal},
	ReasonSecretNotFound:          {"a file is missing; its Secret or the named key may not exist", exitFinal},
	ReasonToolMissing:             {"the image lacks a program", exitFinal},
	ReasonInterrupted:             {"the run was stopped by a signal; the next run continues", 0},
	ReasonFailed:                  {"the run failed; its log has the cause", 0},
	ReasonTargetNotReady:          {"the database server cannot be reached, or accepts no connection now", 0},
	ReasonAuthenticationFailed:    {"the database server refuses the user, the password or the way of authentication", 0},
	ReasonTLSFailed:               {"TLS fails: a server offers none, or not the certificate that the settings require", 0},
	ReasonDatabaseNotFound:        {"the server does not have the database", 0},
	ReasonPermissionDenied:        {"the user of the database lacks a permission", 0},
	ReasonVersionMismatch:         {"the server is newer than pg_dump of the image", exitFinal},
	ReasonDumpFailed:              {"pg_dump failed, or ended early; the log has its text", 0},
	ReasonRepositoryUnreachable:   {"the store of the repository cannot be reached", 0},
	ReasonRepositoryRefused:       {"the store refuses a request; check credentials, permissions and the name of the bucket", 0},
	ReasonRepositoryPasswordWrong: {"the repository has another password", exitFinal},
	ReasonRepositoryMissing:       {"there is no repository", exitFinal},
	ReasonRepositoryLocked:        {"another run has locked the repository", 0},
	ReasonRepositoryDamaged:       {"a part of the repository is damaged or missing; see the log, and restic's manual", 0},
	ReasonRepositoryFull:          {"the volume has less space than restic needs for one file", 0},
	ReasonSnapshotNotFound:        {"the repository does not have the snapshot", exitFinal},
	ReasonArchiveUnreadable:       {"pg_restore cannot read the dump", exitFinal},
	ReasonScratchFailed:           {"the scratch server does not run; its directory may be full", 0},
	ReasonScratchRestoreFailed:    {"the dump can be read, but the scratch server refused a part of it; see the log", exitNotVerified},
	ReasonQueryInvalid:            {"verification.query (BACKUP_QUERY) does not run; see the log", exitNotVerified},
	ReasonQueryFailed:             {"verification.query (BACKUP_QUERY) returned no row, false, NULL or 0, or failed", exitNotVerified},
	ReasonRestoreFailed:           {"the server refused a part of the dump; the log has its text", 0},
	ReasonTargetNotEmpty:          {"the database is not empty, and a restore does not overwrite: choose another name, or drop it", exitFinal},
	ReasonRolesMissing:            {"the server lacks roles of the dump, and the user may not create them", exitFinal},
}

// fault is an error with a reason. Its message is a sentence of this program, and the message of the result. The cause
// is only logged: texts of tools and servers may hold data, and come in the server's language.
type fault struct {
	reason  Reason
	details []string
	cause   error
}

func (f *fault) message() string {
	return strings.Join(append([]string{failures[f.reason].sentence}, f.details...), ": ")
}

func (f *fault) Error() string { return fmt.Sprintf("%s (%v)", f.message(), f.cause) }

func (f *fault) Unwrap() error { return f.cause }

// because returns a fault. Details are added to its sentence.
func because(cause error, reason Reason, details ...string) error {
	return &fault{reason: reason, details: details, cause: cause}
}

// faultOf returns the outermost fault in an error. Any other error is a fault without a known reason.
func faultOf(err error) *fault {
	if f, ok := errors.AsType[*fault](err); ok {
		return f
	}
	return &fault{reason: ReasonFailed, cause: err}
}

// list joins the first names of a list.
func list(names []string) string {
	const limit = 5
	if len(names) > limit {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:limit], ", "), len(names)-limit)
	}
	return strings.Join(names, ", ")
}
