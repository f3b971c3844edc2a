package main

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// Reason says in one word how a run ended. It can be the reason of a condition.
type Reason string

// Reasons of runs that succeeded.
const (
	ReasonBackupSucceeded  Reason = "BackupSucceeded"
	ReasonAlreadyComplete  Reason = "AlreadyComplete" // the backup existed; nothing was dumped
	ReasonRestoreSucceeded Reason = "RestoreSucceeded"
	ReasonDeleteSucceeded  Reason = "DeleteSucceeded"
)

// Reasons of runs that failed.
const (
	ReasonInvalidSettings Reason = "InvalidSettings" // a variable is missing or wrong
	ReasonToolMissing     Reason = "ToolMissing"     // the image lacks a PostgreSQL program
	ReasonToolKilled      Reason = "ToolKilled"      // a PostgreSQL program was killed: too little memory?
	ReasonInterrupted     Reason = "Interrupted"     // stopped by SIGTERM or SIGINT
	ReasonBusy            Reason = "Busy"            // another run uses the same files or restores into the database
	ReasonFailed          Reason = "Failed"          // no other reason applies

	ReasonTargetNotReady       Reason = "TargetNotReady"       // the server could not be reached in time
	ReasonAuthenticationFailed Reason = "AuthenticationFailed" // the server refuses user or password
	ReasonTLSFailed            Reason = "TLSFailed"            // no TLS, or not with the required certificate
	ReasonDatabaseNotFound     Reason = "DatabaseNotFound"
	ReasonPermissionDenied     Reason = "PermissionDenied" // the user lacks a permission
	ReasonVersionMismatch      Reason = "VersionMismatch"  // the server is newer than pg_dump
	ReasonConnectionLost       Reason = "ConnectionLost"   // the connection to the server ended too early
	ReasonDumpFailed           Reason = "DumpFailed"       // pg_dump or pg_dumpall failed otherwise

	ReasonVolumeMissing     Reason = "VolumeMissing" // BACKUP_ROOT is not a directory
	ReasonVolumeFull        Reason = "VolumeFull"
	ReasonVolumeNotWritable Reason = "VolumeNotWritable" // file permissions, or mounted read-only
	ReasonVolumeFailed      Reason = "VolumeFailed"      // any other error of the file system

	ReasonBackupNotFound    Reason = "BackupNotFound"
	ReasonFileMissing       Reason = "FileMissing"       // the facts exist, the dump does not
	ReasonChecksumMismatch  Reason = "ChecksumMismatch"  // size or SHA-256 differ from the facts
	ReasonArchiveUnreadable Reason = "ArchiveUnreadable" // pg_restore cannot read the dump's table of contents
	ReasonArchiveIncomplete Reason = "ArchiveIncomplete" // the table of contents lacks tables
	ReasonRestoreFailed     Reason = "RestoreFailed"     // the server of a restore refused a part of the dump
	ReasonTargetNotEmpty    Reason = "TargetNotEmpty"    // restore refused to overwrite

	// The scratch server is not the server that was dumped, and runs code of the dump. So none of these reasons is
	// evidence against the dump.
	ReasonScratchFailed        Reason = "ScratchFailed"        // the scratch server does not run
	ReasonScratchRestoreFailed Reason = "ScratchRestoreFailed" // the scratch server refused a part of the dump
	ReasonRowsDiffer           Reason = "RowsDiffer"           // the restored rows differ from the dumped rows
	ReasonQueryInvalid         Reason = "QueryInvalid"         // BACKUP_QUERY does not run
	ReasonQueryFailed          Reason = "QueryFailed"          // BACKUP_QUERY returned no row, false, NULL or 0
)

// final are the reasons of failures that another try cannot fix.
var final = map[Reason]bool{
	ReasonInvalidSettings: true, ReasonToolMissing: true, ReasonVersionMismatch: true,
	ReasonBackupNotFound: true, ReasonFileMissing: true, ReasonQueryInvalid: true, ReasonTargetNotEmpty: true,
}

// faulty are the reasons that are evidence against the dump itself. With any other reason the dump could not be
// verified.
var faulty = map[Reason]bool{
	ReasonChecksumMismatch: true, ReasonArchiveUnreadable: true, ReasonArchiveIncomplete: true,
}

// fault is an error with a reason. Its text is the message of the result.
type fault struct {
	reason  Reason
	message string
	cause   error
}

func (f *fault) Error() string { return f.message }

func (f *fault) Unwrap() error { return f.cause }

func failf(reason Reason, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	return &fault{reason: reason, message: err.Error(), cause: errors.Unwrap(err)}
}

// reasonOf is the reason of the outermost fault in an error, or Failed.
func reasonOf(err error) Reason {
	if f, ok := errors.AsType[*fault](err); ok {
		return f.reason
	}
	return ReasonFailed
}

// volumeFault gives an error of the file system its reason.
func volumeFault(doing string, err error) error {
	reason := ReasonVolumeFailed
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), errors.Is(err, syscall.EFBIG):
		reason = ReasonVolumeFull
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		reason = ReasonVolumeNotWritable
	}
	return failf(reason, "%s: %w", doing, err)
}
