package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
	"unicode/utf8"
)

// Result is the result of a run, as JSON of at most ResultLimit bytes. Times are UTC.
type Result struct {
	Verb      string `json:"verb"`
	Succeeded bool   `json:"succeeded"`
	Reason    Reason `json:"reason"`
	// Message is one sentence for users. It never contains a secret.
	Message string `json:"message"`
	// Warning reports a fault in a successful run, such as a file that retention could not remove.
	Warning string    `json:"warning,omitempty"`
	Started time.Time `json:"started"`
	Seconds float64   `json:"seconds"`
	// Backup has the facts of the backup of this run. A failed run has them if the backup exists.
	Backup *Facts `json:"backup,omitempty"`
	// Restored is the outcome of a restore.
	Restored *Restored `json:"restored,omitempty"`
	// Backups are the backups of this owner after a run of backup, newest first. The list of a failed run is nil when
	// the run could not read the volume, or another run was changing it. Removed are the names of the backups that the
	// run removed.
	Backups []Entry  `json:"backups,omitzero"`
	Removed []string `json:"removed,omitempty"`
	// Omitted is how many of Backups and Removed were left out to keep within ResultLimit, the oldest first.
	Omitted int `json:"omitted,omitempty"`
}

// Dump has the facts about a backup that are both in its file and in a result.
type Dump struct {
	Name      string    `json:"name"`
	Database  string    `json:"database"`
	Path      string    `json:"path"`
	Size      int64     `json:"size"` // of the dump, in bytes
	SHA256    string    `json:"sha256"`
	Started   time.Time `json:"started"`
	Completed time.Time `json:"completed,omitzero"`

	ServerVersion string `json:"serverVersion,omitempty"`
	PgDumpVersion string `json:"pgDumpVersion,omitempty"`

	// Verified is the strongest verification that passed; nil when none passed, or a verification failed since.
	Verified *Verified `json:"verified,omitempty"`
	// Failure is a verification that failed, or that was not possible: State says which. A later verification that is as
	// strong and passes removes it.
	Failure *Failure `json:"failure,omitempty"`
}

// Facts are the facts about one backup in a result.
type Facts struct {
	Dump
	State  State `json:"state"`
	Tables int   `json:"tables"`
	Rows   int64 `json:"rows"` // of the tables that were counted
	// NotCounted names tables whose rows were not counted, each with the reason.
	NotCounted []string `json:"notCounted,omitempty"`
}

// Verified is how and when a backup was verified.
type Verified struct {
	Mode Mode      `json:"mode"`
	Time time.Time `json:"time"`
}

// mode is None when no verification passed.
func (v *Verified) mode() Mode {
	if v == nil {
		return ModeNone
	}
	return v.Mode
}

// Failure is why and when a verification of a backup failed or was not possible.
type Failure struct {
	Mode    Mode      `json:"mode"` // the part of the verification that failed
	Reason  Reason    `json:"reason"`
	Message string    `json:"message"`
	Time    time.Time `json:"time"`
}

// Restored is the outcome of a restore.
type Restored struct {
	Database string `json:"database"`
	Tables   int    `json:"tables"`
	Rows     int64  `json:"rows"`
	// Replaced is true when the restore dropped an old database.
	Replaced bool `json:"replaced"`
	// RolesCreated is the number of roles that the dump needs and the server lacked. They were created without login and
	// attributes.
	RolesCreated int `json:"rolesCreated"`
}

// ResultLimit is the length at which Kubernetes cuts a termination message, in bytes.
const ResultLimit = 4096

// messageLimit is the longest message, in bytes.
const messageLimit = 600

// encode returns the result as JSON within the limit. Lists are cut first, then the message.
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
		case r.Backup != nil && (r.Backup.Failure != nil || r.Backup.NotCounted != nil):
			facts := *r.Backup
			facts.Failure, facts.NotCounted = nil, nil // Reason and Message have them
			r.Backup = &facts
		default:
			r.Backup, r.Restored = nil, nil
		}
	}
}

// shorten cuts a text to a number of bytes, never inside a character.
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

// writeResult writes the result where the kubelet reads it. That file is a mount, so it is written in place. The
// default is used only if it exists, so that a run outside of a pod leaves no file in /dev.
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
