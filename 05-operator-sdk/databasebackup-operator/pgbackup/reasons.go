package main

import (
	"errors"
	"fmt"
	"strings"
)

// Reason says in one word how a run ended. It can be the reason of a condition.
type Reason string

// Reasons of successful runs.
const (
	ReasonBackupSucceeded    Reason = "BackupSucceeded"
	ReasonAlreadyComplete    Reason = "AlreadyComplete" // the snapshot existed; nothing was dumped
	ReasonVerificationPassed Reason = "VerificationPassed"
	ReasonFinished           Reason = "Finished"
	ReasonRestoreSucceeded   Reason = "RestoreSucceeded"
	ReasonDeleteSucceeded    Reason = "DeleteSucceeded"
)

// Exit codes of the program. Go uses 2 after a panic.
const (
	exitFailed      = 1 // another try may succeed
	exitFinal       = 3 // another try would fail in the same way
	exitNotVerified = 4 // nothing bad is known about the dump, but it could not be verified
)

// Reasons of failed runs.
var (
	ReasonInvalidSettings = failure("InvalidSettings", exitFinal, "a setting is wrong")
	ReasonSecretNotFound  = failure("SecretNotFound", exitFinal,
		"a file is missing; its Secret or the named key may not exist")
	ReasonToolMissing = failure("ToolMissing", exitFinal, "the image lacks a program")
	ReasonInterrupted = failure("Interrupted", exitFailed,
		"the run was stopped by a signal; the next run continues")
	ReasonFailed         = failure("Failed", exitFailed, "the run failed; its log has the cause")
	ReasonTargetNotReady = failure("TargetNotReady", exitFailed,
		"the database server cannot be reached, or accepts no connection now")
	ReasonAuthenticationFailed = failure("AuthenticationFailed", exitFailed,
		"the database server refuses the user, the password or the way of authentication")
	ReasonTLSFailed = failure("TLSFailed", exitFailed,
		"TLS fails: a server offers none, or not the certificate that the settings require")
	ReasonDatabaseNotFound = failure("DatabaseNotFound", exitFailed, "the server does not have the database")
	ReasonPermissionDenied = failure("PermissionDenied", exitFailed, "the user of the database lacks a permission")
	ReasonVersionMismatch  = failure("VersionMismatch", exitFinal,
		"a backup needs the server's version of PostgreSQL in the image or a newer one, a restore the same or an older one")
	ReasonDumpFailed            = failure("DumpFailed", exitFailed, "pg_dump failed, or ended early; the log has its text")
	ReasonRepositoryUnreachable = failure("RepositoryUnreachable", exitFailed,
		"the store of the repository cannot be reached")
	ReasonRepositoryRefused = failure("RepositoryRefused", exitFailed,
		"the store refuses a request; check credentials, permissions and the name of the bucket")
	ReasonRepositoryPasswordWrong = failure("RepositoryPasswordWrong", exitFinal, "the repository has another password")
	ReasonRepositoryMissing       = failure("RepositoryMissing", exitFinal, "there is no repository")
	ReasonRepositoryLocked        = failure("RepositoryLocked", exitFailed, "another run has locked the repository")
	ReasonRepositoryDamaged       = failure("RepositoryDamaged", exitFailed,
		"a part of the repository is damaged or missing; see the log, and restic's manual")
	ReasonRepositoryFull = failure("RepositoryFull", exitFailed,
		"the volume has less space than restic needs for one file")
	ReasonSnapshotNotFound  = failure("SnapshotNotFound", exitFinal, "the repository does not have the snapshot")
	ReasonArchiveUnreadable = failure("ArchiveUnreadable", exitFinal, "pg_restore cannot read the dump")
	ReasonScratchFailed     = failure("ScratchFailed", exitFailed,
		"the scratch server does not run; its directory may be full")
	ReasonScratchRestoreFailed = failure("ScratchRestoreFailed", exitNotVerified,
		"the dump can be read, but the scratch server refused a part of it; see the log")
	ReasonQueryInvalid = failure("QueryInvalid", exitNotVerified,
		"verification.query (BACKUP_QUERY) does not run; see the log")
	ReasonQueryFailed = failure("QueryFailed", exitNotVerified,
		"verification.query (BACKUP_QUERY) returned no row, false, NULL or 0, or failed")
	ReasonRestoreFailed = failure("RestoreFailed", exitFailed,
		"the server refused a part of the dump; the log has its text")
	ReasonTargetNotEmpty = failure("TargetNotEmpty", exitFinal,
		"the database is not empty, and a restore does not overwrite: choose another name, or drop it")
)

// sentences and exitCodes are those of the reasons of failed runs.
var sentences, exitCodes = map[Reason]string{}, map[Reason]int{}

func failure(reason Reason, code int, sentence string) Reason {
	sentences[reason], exitCodes[reason] = sentence, code
	return reason
}

// fault is an error with a reason. Its message is a sentence of this program, and the message of the result. The cause
// is only logged: texts of tools and servers may hold data, and come in the server's language.
type fault struct {
	reason  Reason
	details []string
	cause   error
}

func (f *fault) message() string {
	return strings.Join(append([]string{sentences[f.reason]}, f.details...), ": ")
}

func (f *fault) Error() string { return fmt.Sprintf("%s (%v)", f.message(), f.cause) }

func (f *fault) Unwrap() error { return f.cause }

// because returns a fault. Details are added to its sentence.
func because(cause error, reason Reason, details ...string) error {
	return &fault{reason: reason, details: details, cause: cause}
}

// faultOf returns the outermost fault in an error. Any other error may be one of the database server.
func faultOf(err error) *fault {
	if f, ok := errors.AsType[*fault](err); ok {
		return f
	}
	return serverFault(err)
}

// list joins the first names of a list.
func list(names []string) string {
	const limit = 5
	if len(names) > limit {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:limit], ", "), len(names)-limit)
	}
	return strings.Join(names, ", ")
}
