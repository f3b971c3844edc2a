package main

import (
	"encoding/json"
	"fmt"
	"slices"
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
	// Backups are the newest backups of this owner after finish, newest first: as many as ResultLimit allows.
	Backups []Entry `json:"backups,omitzero"`
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
	Database string `json:"database"`
	Tables   int    `json:"tables"`
	// LeftOut names parts of the dump that were not restored; a person adds them.
	LeftOut []string `json:"leftOut,omitempty"`
}

// String is the end of a message.
func (r *Restored) String() string {
	if len(r.LeftOut) == 0 {
		return fmt.Sprintf("%d tables", r.Tables)
	}
	return fmt.Sprintf("%d tables; not restored: %s", r.Tables, list(r.LeftOut))
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

// encode returns the result as JSON within the limit. Lists are cut first, then the texts.
func (r Result) encode() ([]byte, error) {
	for limit := 600; ; {
		r.Message, r.Warning = shorten(r.Message, limit), shorten(r.Warning, limit)
		encoded, err := json.Marshal(r)
		if err != nil || len(encoded) < ResultLimit {
			return append(encoded, '\n'), err
		}
		switch {
		case len(r.Backups) > 0:
			r.Backups = r.Backups[:len(r.Backups)-1]
		case r.Restored != nil && len(r.Restored.LeftOut) > 10:
			restored := *r.Restored
			restored.LeftOut = append(slices.Clone(restored.LeftOut[:9]), "and more: see the log")
			r.Restored = &restored
		case limit > 0:
			limit /= 2
		default:
			r.Restored = nil
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
