package operator

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

// audit reads an API server's audit log, each line once.
type audit struct {
	path string

	mu     sync.Mutex
	offset int64
	byUser map[string][]request
}

// A request is one line of the audit log: a request that was answered, or a watch that was begun.
type request struct {
	Stage, Verb, RequestURI  string
	User                     struct{ Username string }
	ObjectRef                struct{ APIGroup, Resource, Namespace, Name, Subresource string }
	ResponseStatus           struct{ Code int }
	RequestReceivedTimestamp time.Time
	StageTimestamp           time.Time
}

// of returns what a user of the tests asked of the API server, oldest first.
func (a *audit) of(t *testing.T, user string) []request {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	f, err := os.Open(a.path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Seek(a.offset, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewReader(f); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return slices.Clone(a.byUser[user]) // the rest is being written
		}
		a.offset += int64(len(line))
		a.read(line)
	}
}

func (a *audit) read(line []byte) {
	var r request
	if json.Unmarshal(line, &r) != nil || strings.HasPrefix(r.User.Username, "system:") {
		return
	}
	if begun := r.Stage == "ResponseStarted"; begun != (r.Verb == "watch" && r.ResponseStatus.Code == 200) {
		return // a watch counts when it begins, everything else when it is answered
	}
	if a.byUser == nil {
		a.byUser = map[string][]request{}
	}
	a.byUser[r.User.Username] = append(a.byUser[r.User.Username], r)
}

// settled returns what a user asked, leases apart, once nothing new comes.
func (w *world) settled(user string) (all []request) {
	w.t.Helper()
	steady(w.t, "what "+user+" sends", 500*time.Millisecond, func() int {
		all = slices.DeleteFunc(w.audit.of(w.t, user), request.ofLease)
		return len(all)
	})
	return all
}

// steady waits until a number stays the same for a while.
func steady(t *testing.T, what string, while time.Duration, number func() int) {
	t.Helper()
	last, since := number(), time.Now()
	gomega.NewWithT(t).Eventually(func() time.Duration {
		if n := number(); n != last {
			last, since = n, time.Now()
		}
		return time.Since(since)
	}, "60s", "50ms").Should(gomega.BeNumerically(">=", while), "%s comes to rest", what)
}

func (r request) ofLease() bool { return r.ObjectRef.Resource == "leases" }
func (r request) ofEvent() bool { return r.ObjectRef.Resource == "events" }

// changes reports whether a request asks for a change.
func (r request) changes() bool {
	return slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, r.Verb)
}

// writes are the requests that ask for a change, leases and events apart.
func writes(all []request) []request {
	return filter(all, func(r request) bool { return r.changes() && !r.ofLease() && !r.ofEvent() })
}

func filter(all []request, keep func(request) bool) []request {
	return slices.DeleteFunc(slices.Clone(all), func(r request) bool { return !keep(r) })
}

func (r request) String() string {
	what := r.ObjectRef.Resource
	if r.ObjectRef.Subresource != "" {
		what += "/" + r.ObjectRef.Subresource
	}
	return r.Verb + " " + what + " " + r.ObjectRef.Namespace + "/" + r.ObjectRef.Name + " " + r.StageTimestamp.Format("05.000")
}
