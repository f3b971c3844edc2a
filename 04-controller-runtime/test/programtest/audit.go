package programtest

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/onsi/gomega"
)

// An Audit reads an API server's audit log, each line once.
type Audit struct {
	// Path is the path of the log.
	Path string

	mu     sync.Mutex
	offset int64
	byUser map[string][]Request
}

// A Request is one line of the audit log: a request that was answered, or a watch that was begun.
type Request struct {
	Stage, Verb, RequestURI  string
	User                     struct{ Username string }
	ObjectRef                struct{ APIGroup, Resource, Namespace, Name, Subresource string }
	ResponseStatus           struct{ Code int }
	RequestReceivedTimestamp time.Time
	StageTimestamp           time.Time
}

// Of returns the requests of a user of the tests to the API server, oldest first.
func (a *Audit) Of(t *testing.T, user string) []Request {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	file, err := os.Open(a.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.Seek(a.offset, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewReader(file); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return slices.Clone(a.byUser[user]) // the API server is still writing the rest
		}
		a.offset += int64(len(line))
		a.read(line)
	}
}

func (a *Audit) read(line []byte) {
	var r Request
	if json.Unmarshal(line, &r) != nil || strings.HasPrefix(r.User.Username, "system:") {
		return
	}
	if begun := r.Stage == "ResponseStarted"; begun != (r.Verb == "watch" && r.ResponseStatus.Code == 200) {
		return // a watch counts when it begins, other requests when they are answered
	}
	if a.byUser == nil {
		a.byUser = map[string][]Request{}
	}
	a.byUser[r.User.Username] = append(a.byUser[r.User.Username], r)
}

// Settled returns the requests of a user, without leases, when no new request comes.
func (a *Audit) Settled(t *testing.T, user string) (all []Request) {
	t.Helper()
	Steady(t, "what "+user+" sends", 500*time.Millisecond, func() int {
		all = slices.DeleteFunc(a.Of(t, user), Request.OfLease)
		return len(all)
	})
	return all
}

// Steady waits until a number stays the same for a while.
func Steady(t *testing.T, what string, while time.Duration, number func() int) {
	t.Helper()
	last, since := number(), time.Now()
	gomega.NewWithT(t).Eventually(func() time.Duration {
		if n := number(); n != last {
			last, since = n, time.Now()
		}
		return time.Since(since)
	}, "60s", "50ms").Should(gomega.BeNumerically(">=", while), "%s becomes steady", what)
}

// OfLease reports whether a request is about a lease.
func (r Request) OfLease() bool { return r.ObjectRef.Resource == "leases" }

// Changes reports whether a request asks for a change.
func (r Request) Changes() bool {
	return slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, r.Verb)
}

// Writes returns the requests that ask for a change, without leases and events.
func Writes(all []Request) []Request {
	return Filter(all, func(r Request) bool { return r.Changes() && !r.OfLease() && r.ObjectRef.Resource != "events" })
}

// Filter returns the requests to keep.
func Filter(all []Request, keep func(Request) bool) []Request {
	return slices.DeleteFunc(slices.Clone(all), func(r Request) bool { return !keep(r) })
}

func (r Request) String() string {
	what := r.ObjectRef.Resource
	if r.ObjectRef.Subresource != "" {
		what += "/" + r.ObjectRef.Subresource
	}
	return r.Verb + " " + what + " " + r.ObjectRef.Namespace + "/" + r.ObjectRef.Name + " " +
		r.StageTimestamp.Format("05.000")
}
