package world

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"example.com/operator-workshop/scripts/internal/lab/wire"
)

// An AuditEvent is one line of the API server's audit log.
type AuditEvent struct {
	AuditID, Verb, RequestURI string
	// Stage is ResponseComplete when a request is done with; a watch has ResponseStarted before.
	Stage string
	User  struct{ Username string }
	// ObjectRef is missing when no resource was asked for.
	ObjectRef *struct {
		APIGroup, APIVersion, Resource, Subresource, Namespace, Name string
	}
	ResponseStatus struct{ Code int }
	Annotations    map[string]string
	// RequestReceivedTimestamp and StageTimestamp are when the request came, and when the stage was reached.
	RequestReceivedTimestamp, StageTimestamp time.Time
}

// Request is what was asked for, as the ledger calls it; only an apply is called patch.
func (e AuditEvent) Request() wire.Request {
	r := wire.Request{Verb: e.Verb}
	if o := e.ObjectRef; o != nil {
		r.Group, r.Version, r.Resource, r.Subresource = o.APIGroup, o.APIVersion, o.Resource, o.Subresource
		r.Namespace, r.Name = o.Namespace, o.Name
	}
	return r
}

// Denied tells whether the user had no permission.
func (e AuditEvent) Denied() bool {
	return e.Annotations["authorization.k8s.io/decision"] == "forbid"
}

// An audit reads the log from a place on.
type audit struct {
	path   string
	offset int64
	events []AuditEvent
}

// Audit returns the events of the audit log since a place in it, and the place where it ends now. The
// first place is 0.
func (w *World) Audit(since int64) (events []AuditEvent, end int64, err error) {
	a := audit{path: w.AuditLog, offset: since}
	err = a.read()
	return a.events, a.offset, err
}

// read adds the lines that are new and whole.
func (a *audit) read() error {
	f, err := os.Open(a.path)
	if err != nil {
		return err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.Size() < a.offset {
		return errors.Join(err, fmt.Errorf("%s was replaced by a new one: the run was too long to count", a.path))
	}
	if _, err := f.Seek(a.offset, io.SeekStart); err != nil {
		return err
	}
	for lines := bufio.NewReader(f); ; {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		var e AuditEvent
		if err := json.Unmarshal(line, &e); err != nil {
			return fmt.Errorf("%s: %w", a.path, err)
		}
		a.offset += int64(len(line))
		a.events = append(a.events, e)
	}
}

// of returns the events of a stage, of these users.
func (a *audit) of(stage string, users []string) map[string]AuditEvent {
	found := map[string]AuditEvent{}
	for _, e := range a.events {
		if e.Stage == stage && slices.Contains(users, e.User.Username) {
			found[e.AuditID] = e
		}
	}
	return found
}
