// Package loop describes the control loop of a program, seen from outside: the events that were delivered to the
// program and the requests that it sent, in order. The lab's proxy records them in a file; a terminal, a browser and
// checks read it.
package loop

import (
	"slices"
	"strings"
	"time"
)

// The kinds of records.
const (
	Event   = "event"
	Request = "request"
	Note    = "note"
)

// A Record is one line of a ledger: an event that was delivered to a program, or a request of a program. It describes
// the object, and has no value of its data.
type Record struct {
	// Is has the kind: Event, Request or Note.
	Is string `json:"is"`
	// N gives the order in which events were delivered and requests arrived, from 1. A request gets its line when it is
	// answered, so a line may have a smaller number than the line before it.
	N int `json:"n"`
	// Time is when the event was delivered, or when the request arrived.
	Time time.Time `json:"time"`
	// By is the program.
	By Client `json:"by,omitzero"`
	// The object. For a response that is not a single object, Name, UID and ResourceVersion may be empty.
	Group           string `json:"group,omitempty"`
	Version         string `json:"version,omitempty"`
	Resource        string `json:"resource,omitempty"`
	Subresource     string `json:"subresource,omitempty"`
	Namespace       string `json:"namespace,omitempty"`
	Name            string `json:"name,omitempty"`
	UID             string `json:"uid,omitempty"`
	ResourceVersion string `json:"resourceVersion,omitempty"`

	// Type of an event: ADDED, MODIFIED, DELETED or ERROR. Bookmarks are not recorded.
	Type string `json:"type,omitempty"`
	// Kind of the object, when it is known.
	Kind string `json:"kind,omitempty"`
	Shown

	// Verb of the API; for a request without a resource, the HTTP method in lower case.
	Verb string `json:"verb,omitempty"`
	// Code is the status code of the response, 0 when the client got no response.
	Code int `json:"code,omitempty"`
	// Effect of a write: moved (the object has another resourceVersion, or is gone), same, or unknown.
	Effect string `json:"effect,omitempty"`
	// Took is how many milliseconds passed until the client had the response.
	Took float64 `json:"took,omitempty"`
	// Open marks a watch that was opened and continues. The watch gets a second line when it ends.
	Open   bool `json:"open,omitempty"`
	DryRun bool `json:"dryRun,omitempty"`

	// Note describes a change of the loop itself, such as frozen watches.
	Note string `json:"note,omitempty"`

	peer *Peer // completes By
}

// With returns the record as a record of a peer, which may not be identified yet.
func (r Record) With(p *Peer) Record {
	r.peer = p
	return r
}

// A Client is the sender of a request, or the receiver of an event.
type Client struct {
	// Name is the first word of the user agent: kubectl of "kubectl/v1.37.1 (linux/amd64) kubernetes/0123456".
	Name string `json:"name,omitempty"`
	// PID and Executable of the process; they are empty where the system does not report them.
	PID        int    `json:"pid,omitempty"`
	Executable string `json:"executable,omitempty"`
	// Port of its connection.
	Port int `json:"port,omitempty"`
	// User is the user name under which the API server knows the client.
	User string `json:"user,omitempty"`
}

// User is the name of the program in the records of what a user did, or the lab in the place of a user.
const User = "a user"

// key distinguishes clients, also clients with the same name.
func (c Client) key() Client {
	if c.PID != 0 {
		return Client{Name: c.Name, PID: c.PID}
	}
	return Client{Name: c.Name, Port: c.Port}
}

// Writes are the verbs that ask for a change.
var Writes = []string{"create", "update", "patch", "apply", "delete", "deletecollection"}

// Changes reports whether a request asks for a change. Access reviews are creates that store nothing, so they are not
// changes.
func (r Record) Changes() bool {
	return r.Is == Request && slices.Contains(Writes, r.Verb) && r.Subresource != "token" &&
		r.Group != "authorization.k8s.io" && r.Group != "authentication.k8s.io"
}

// IsHousekeeping reports whether a record is about leases, about Event objects, or without a resource.
func (r Record) IsHousekeeping() bool {
	return r.Resource == "" || r.Resource == "leases" || r.Resource == "events"
}

// IsEndOfWatch reports whether a record is the second record of a watch.
func (r Record) IsEndOfWatch() bool { return r.Verb == "watch" && !r.Open && r.Code/100 == 2 }

// FullResource returns the resource with its subresource: deployments/status.
func (r Record) FullResource() string { return strings.TrimSuffix(r.Resource+"/"+r.Subresource, "/") }

// Which returns the object: namespace/name. It is empty when a request is for all objects.
func (r Record) Which() string {
	if r.Name == "" || r.Namespace == "" || r.Resource == "namespaces" {
		return r.Name
	}
	return r.Namespace + "/" + r.Name
}

// IsBy reports whether a record belongs to one of the programs or users, given by name, number or executable. An empty
// list matches all.
func (r Record) IsBy(names []string) bool {
	return len(names) == 0 || slices.ContainsFunc(names, r.By.is)
}

// recent is how many events of a program an Order keeps: a request is recorded when it is answered, and more events may
// have been delivered until then.
const recent = 64

// An Order finds the event that came before a request. Its zero value has no events.
type Order struct {
	events map[Client][]Record // the newest at the end
}

// Note adds a record, in the order of the ledger.
func (o *Order) Note(r Record) {
	if r.Is != Event {
		return
	}
	if o.events == nil {
		o.events = map[Client][]Record{}
	}
	some := append(o.events[r.By.key()], r)
	o.events[r.By.key()] = some[max(0, len(some)-recent):]
}

// Before returns the newest event that was delivered to a program before it sent a request: an event of the object, of
// its owner, or of another object of this owner, if there is one.
func (o *Order) Before(request Record) (newest Record, ok bool) {
	for _, event := range slices.Backward(o.events[request.By.key()]) {
		if event.N >= request.N {
			continue
		}
		if event.isNear(request) {
			return event, true
		}
		if !ok {
			newest, ok = event, true
		}
	}
	return newest, ok
}

// isNear reports whether two records are about objects of one name or of one owner.
func (r Record) isNear(other Record) bool {
	if r.Which() == other.Which() || other.UID != "" && slices.Contains(r.Owners, other.UID) {
		return true
	}
	return slices.ContainsFunc(other.Owners, func(owner string) bool { return owner == r.UID || slices.Contains(r.Owners, owner) })
}
