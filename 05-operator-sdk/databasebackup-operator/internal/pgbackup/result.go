package pgbackup

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"
	"unicode/utf8"
)

// Reason is one word for how a run ended, fit for a condition.
type Reason string

// Reasons of runs that succeeded.
const (
	ReasonBackupSucceeded       Reason = "BackupSucceeded"
	ReasonAlreadyComplete       Reason = "AlreadyComplete" // this backup was there; nothing was dumped
	ReasonVerificationSucceeded Reason = "VerificationSucceeded"
	ReasonPruneSucceeded        Reason = "PruneSucceeded"
	ReasonRestoreSucceeded      Reason = "RestoreSucceeded"
	ReasonDeleteSucceeded       Reason = "DeleteSucceeded"
	ReasonListSucceeded         Reason = "ListSucceeded"
)

// Reasons of runs that failed.
const (
	ReasonInvalidSettings Reason = "InvalidSettings" // a variable is missing or wrong
	ReasonToolMissing     Reason = "ToolMissing"     // the image lacks a PostgreSQL program
	ReasonToolKilled      Reason = "ToolKilled"      // a PostgreSQL program was killed: too little memory?
	ReasonInterrupted     Reason = "Interrupted"     // stopped by SIGTERM or SIGINT
	ReasonBusy            Reason = "Busy"            // another run works on the files of this owner, or restores into the same database
	ReasonFailed          Reason = "Failed"          // none of the others

	ReasonTargetNotReady       Reason = "TargetNotReady"       // the server could not be reached in time
	ReasonAuthenticationFailed Reason = "AuthenticationFailed" // the server refuses user or password
	ReasonDatabaseNotFound     Reason = "DatabaseNotFound"
	ReasonPermissionDenied     Reason = "PermissionDenied" // the server refuses what the user may not do
	ReasonVersionMismatch      Reason = "VersionMismatch"  // the server is newer than pg_dump
	ReasonConnectionLost       Reason = "ConnectionLost"   // the server went away in the middle
	ReasonDumpFailed           Reason = "DumpFailed"       // pg_dump or pg_dumpall failed otherwise

	ReasonVolumeMissing     Reason = "VolumeMissing" // BACKUP_ROOT is no directory
	ReasonVolumeFull        Reason = "VolumeFull"
	ReasonVolumeNotWritable Reason = "VolumeNotWritable" // file permissions, or mounted read-only
	ReasonVolumeFailed      Reason = "VolumeFailed"      // any other error of the file system

	ReasonBackupNotFound    Reason = "BackupNotFound"
	ReasonFileMissing       Reason = "FileMissing"       // the facts are there, the dump is not
	ReasonChecksumMismatch  Reason = "ChecksumMismatch"  // size or SHA-256 are not those of the dump that was taken
	ReasonArchiveUnreadable Reason = "ArchiveUnreadable" // pg_restore cannot read the dump's table of contents
	ReasonArchiveIncomplete Reason = "ArchiveIncomplete" // the table of contents lacks tables
	ReasonScratchFailed     Reason = "ScratchFailed"     // no scratch server: says nothing about the dump
	ReasonRestoreFailed     Reason = "RestoreFailed"     // pg_restore failed
	ReasonRowsDiffer        Reason = "RowsDiffer"        // restored, but not the rows that were dumped
	ReasonQueryInvalid      Reason = "QueryInvalid"      // BACKUP_QUERY does not run: says nothing about the dump
	ReasonQueryFailed       Reason = "QueryFailed"       // BACKUP_QUERY returned no row, false, NULL or 0
	ReasonTargetNotEmpty    Reason = "TargetNotEmpty"    // restore refused to overwrite
)

// final are the reasons that the same run would fail with again, whatever happens around it.
var final = map[Reason]bool{
	ReasonInvalidSettings: true, ReasonToolMissing: true, ReasonVersionMismatch: true,
	ReasonBackupNotFound: true, ReasonFileMissing: true, ReasonQueryInvalid: true, ReasonTargetNotEmpty: true,
}

// faulty are the reasons that speak against the dump itself. They are recorded beside it.
var faulty = map[Reason]bool{
	ReasonChecksumMismatch: true, ReasonArchiveUnreadable: true, ReasonArchiveIncomplete: true,
	ReasonRestoreFailed: true, ReasonRowsDiffer: true, ReasonQueryFailed: true,
}

// Result is what a run hands back, as JSON of at most ResultLimit bytes. Times are UTC.
type Result struct {
	Verb      string `json:"verb"`
	Succeeded bool   `json:"succeeded"`
	Reason    Reason `json:"reason"`
	// Message is one sentence for people. It never holds a secret.
	Message string `json:"message"`
	// Warning tells what went wrong beside a success: retention that could not remove a file.
	Warning string    `json:"warning,omitempty"`
	Started time.Time `json:"started"`
	Seconds float64   `json:"seconds"`
	// Backup are the facts of the backup that the run was about. A failed run has them when the backup is there.
	Backup *Facts `json:"backup,omitempty"`
	// Restored tells what a restore made.
	Restored *Restored `json:"restored,omitempty"`
	// Backups are those of this owner after the run, newest first; Removed are the names of those that it removed.
	Backups []Listed `json:"backups,omitempty"`
	Removed []string `json:"removed,omitempty"`
	// Omitted is how many of Backups and Removed were left out to keep within ResultLimit, the oldest first.
	Omitted int `json:"omitted,omitempty"`
}

// Facts are those of one backup.
type Facts struct {
	Name      string    `json:"name"`
	Database  string    `json:"database"`
	Path      string    `json:"path"`
	Size      int64     `json:"size"` // of the dump, in bytes
	SHA256    string    `json:"sha256"`
	Started   time.Time `json:"started"`
	Completed time.Time `json:"completed,omitzero"`

	ServerVersion string `json:"serverVersion,omitempty"`
	PgDumpVersion string `json:"pgDumpVersion,omitempty"`
	Tables        int    `json:"tables"`
	Rows          int64  `json:"rows"`

	// Verified is the strongest verification that passed; nil when there was none, or one failed since.
	Verified *Verified `json:"verified,omitempty"`
	// Failure is a verification that failed. A later one that is as strong and passes removes it.
	Failure *Failure `json:"failure,omitempty"`
}

// Verified tells how and when a backup was verified.
type Verified struct {
	Mode Mode      `json:"mode"`
	Time time.Time `json:"time"`
}

// Failure tells why and when a backup was found to be no good.
type Failure struct {
	Mode    Mode      `json:"mode"` // the part of the verification that failed
	Reason  Reason    `json:"reason"`
	Message string    `json:"message"`
	Time    time.Time `json:"time"`
}

// Restored tells what a restore made.
type Restored struct {
	Database string `json:"database"`
	Tables   int    `json:"tables"`
	Rows     int64  `json:"rows"`
	// Replaced is true when a database was dropped for it.
	Replaced bool `json:"replaced"`
	// RolesCreated are those that the dump needs and the server lacked, made without login and attributes.
	RolesCreated int `json:"rolesCreated"`
}

// Listed is a backup in a list.
type Listed struct {
	Name  string `json:"name"`
	State State  `json:"state"`
}

// ResultLimit is what Kubernetes keeps of a termination message, in bytes.
const ResultLimit = 4096

// messageLimit is the longest message, in bytes.
const messageLimit = 600

// encode is the result as JSON within the limit: lists give way first, the message then.
func (r Result) encode() ([]byte, error) {
	r.Message, r.Warning = shorten(r.Message, messageLimit), shorten(r.Warning, messageLimit)
	for {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		if err := e.Encode(r); err != nil {
			return nil, fmt.Errorf("encode the result: %w", err)
		}
		if b.Len() <= ResultLimit {
			return b.Bytes(), nil
		}
		switch {
		case len(r.Removed) > len(r.Backups):
			r.Removed = r.Removed[:len(r.Removed)-1]
			r.Omitted++
		case len(r.Backups) > 0:
			r.Backups = r.Backups[:len(r.Backups)-1]
			r.Omitted++
		case len(r.Message) > 40 || len(r.Warning) > 40:
			r.Message, r.Warning = shorten(r.Message, len(r.Message)/2), shorten(r.Warning, len(r.Warning)/2)
		case r.Backup != nil && r.Backup.Failure != nil:
			facts := *r.Backup
			facts.Failure = nil // Reason and Message tell it
			r.Backup = &facts
		default:
			r.Backup, r.Restored = nil, nil
		}
	}
}

// shorten cuts a text to so many bytes, never inside a character.
func shorten(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	cut := max(0, limit-len("…"))
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}

// write puts the result where the kubelet looks for it. That file is a mount: it is written in place. The
// default is used only where it exists, so that a run outside of a pod leaves no file in /dev.
func writeResult(path string, encoded []byte) error {
	flags := os.O_WRONLY | os.O_TRUNC
	if path != defaultResult {
		flags |= os.O_CREATE
	}
	f, err := os.OpenFile(path, flags, 0o644)
	if errors.Is(err, fs.ErrNotExist) && path == defaultResult {
		return nil
	}
	if err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	_, err = f.Write(encoded)
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	return nil
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

// reasonOf is the reason of the outermost fault in an error, Failed when there is none.
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
