package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"
)

// Result is the result of a run, as JSON of at most ResultLimit bytes. Times are UTC.
type Result struct {
	Verb      string `json:"verb"`
	Succeeded bool   `json:"succeeded"`
	Reason    Reason `json:"reason"`
	// Message is one sentence of this program. It never has a secret, or a text of a tool or a server.
	Message string `json:"message"`
	// Warning reports a fault in a successful run, such as a store that refuses to delete.
	Warning string    `json:"warning,omitempty"`
	Started time.Time `json:"started"`
	Seconds float64   `json:"seconds"`
	// Backup has the facts of the backup of this run. A failed run has them if the snapshot exists.
	Backup *Backup `json:"backup,omitempty"`
	// Restored is the outcome of a restore.
	Restored *Restored `json:"restored,omitempty"`
	// Backups are the backups of this owner after finish, newest first. Removed are the names of those that it removed.
	Backups []Entry  `json:"backups,omitzero"`
	Removed []string `json:"removed,omitempty"`
	// Omitted is how many of Backups and Removed were left out to keep within ResultLimit, the oldest first.
	Omitted int `json:"omitted,omitempty"`
}

// Backup has the facts about one snapshot.
type Backup struct {
	Name          string    `json:"name"`
	Snapshot      string    `json:"snapshot"` // the first digits of its id
	Database      string    `json:"database"`
	Size          int64     `json:"size"`   // of the dump, in bytes
	Stored        int64     `json:"stored"` // bytes that the backup added to the repository
	Started       time.Time `json:"started"`
	Completed     time.Time `json:"completed"`
	ServerVersion string    `json:"serverVersion,omitempty"`
	Verified      *Verified `json:"verified,omitempty"`
}

// Verified is how and when a backup was verified.
type Verified struct {
	Mode Mode      `json:"mode"`
	Time time.Time `json:"time"`
}

// Restored is the outcome of a restore, also into the scratch server.
type Restored struct {
	Database     string `json:"database"`
	Tables       int    `json:"tables"`
	RolesCreated int    `json:"rolesCreated"`
	// LeftOut names parts of the dump that were not restored; a person adds them.
	LeftOut []string `json:"leftOut,omitempty"`
}

// Entry is a backup in a list.
type Entry struct {
	Name      string    `json:"name"`
	Snapshot  string    `json:"snapshot,omitempty"`
	Completed time.Time `json:"completed"`
	Size      int64     `json:"size"`
	Verified  Mode      `json:"verified,omitempty"`
	Path      string    `json:"path,omitempty"` // of a dump of the older format, which is a file on the volume
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
		case r.Restored != nil && len(r.Restored.LeftOut) > 2:
			restored := *r.Restored
			kept := len(restored.LeftOut) - 2
			restored.LeftOut = append(restored.LeftOut[:kept:kept], "and more: see the log")
			r.Restored = &restored
		case len(r.Message) > 40 || len(r.Warning) > 40:
			r.Message, r.Warning = shorten(r.Message, len(r.Message)/2), shorten(r.Warning, len(r.Warning)/2)
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
	return strings.ToValidUTF8(text[:max(0, limit-len("…"))], "") + "…"
}

// writeResult writes the result where the kubelet reads it. That file is a mount, so it is written in place. Outside of a
// pod it does not exist, and nothing is written.
func writeResult(path string, encoded []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		_, err = f.Write(encoded)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	return nil
}
