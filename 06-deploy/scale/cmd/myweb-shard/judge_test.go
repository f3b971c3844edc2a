package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"example.com/operator-workshop/06-deploy/scale/shard"
)

// auditPolicy records each write, with the object that the API server returned: its resourceVersion orders the writes.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: RequestResponse
  verbs: [create, update, patch, delete]
  resources:
  - {group: "", resources: [configmaps, services]}
  - {group: apps, resources: [deployments]}
  - {group: coordination.k8s.io, resources: [leases]}
  - {group: operator.k8s-summit.org, resources: [mywebs, mywebs/status]}
- level: None
`

// A write is a change that the API server made for a user.
type write struct {
	version   int64
	user      string
	resource  string
	namespace string
	name      string
	holder    string            // of a lease
	labels    map[string]string // of a MyWeb
	status    bool              // the status alone
}

// writes reads an audit log, in the order in which etcd has the changes.
func writes(t *testing.T, path string) (all []write) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<22)
	seen := map[string]bool{}
	for lines.Scan() {
		var e struct {
			User, ImpersonatedUser *struct{ Username string }
			ObjectRef              struct{ Resource, Namespace, Name, Subresource string }
			ResponseStatus         struct{ Code int }
			ResponseObject         struct {
				Metadata struct {
					ResourceVersion string
					Labels          map[string]string
				}
				Spec struct{ HolderIdentity string }
			}
		}
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			continue // the last line, while it is being written
		}
		user := e.User
		if e.ImpersonatedUser != nil {
			user = e.ImpersonatedUser
		}
		version, _ := strconv.ParseInt(e.ResponseObject.Metadata.ResourceVersion, 10, 64)
		o := e.ObjectRef
		key := fmt.Sprint(o.Resource, version)
		if e.ResponseStatus.Code >= 300 || version == 0 || seen[key] { // the same version: nothing changed
			continue
		}
		seen[key] = true
		all = append(all, write{version, user.Username, o.Resource, o.Namespace, o.Name,
			e.ResponseObject.Spec.HolderIdentity, e.ResponseObject.Metadata.Labels, o.Subresource == "status"})
	}
	slices.SortFunc(all, func(a, b write) int { return int(a.version - b.version) })
	return all
}

// twoWriters returns the writes of a replica to a namespace after another replica took it over, and the writes without
// a lease. A replica that acquires a lease anew may write again.
func twoWriters(all []write) (wrong []string) {
	type claim struct {
		user string
		part shard.Range
	}
	var claims []claim // the newest last
	holders := map[string]string{}
	last := map[string]string{} // writer by namespace
	for _, w := range all {
		if !strings.HasPrefix(w.user, "replica-") {
			continue
		}
		if w.resource == "leases" {
			part, ours := shard.RangeOf(w.name)
			if ours && w.holder != "" && w.holder != holders[w.name] {
				claims = append(claims, claim{w.user, part})
			}
			holders[w.name] = w.holder
			continue
		}
		mine, other := -1, -1 // the newest claim of the writer, and of the last other writer
		for at, c := range claims {
			if c.part.Has(w.namespace) && c.user == w.user {
				mine = at
			}
			if c.part.Has(w.namespace) && c.user == last[w.namespace] {
				other = at
			}
		}
		switch {
		case mine < 0:
			wrong = append(wrong, fmt.Sprintf("%s wrote %s %s/%s without a lease", w.user, w.resource, w.namespace, w.name))
		case w.user != last[w.namespace] && mine < other:
			wrong = append(wrong, fmt.Sprintf("%s wrote %s %s/%s after %s took over", w.user, w.resource, w.namespace, w.name,
				last[w.namespace]))
		}
		last[w.namespace] = w.user
	}
	return wrong
}

// expectOneWriter fails when two replicas wrote in the same namespace at the same time.
func (c *cluster) expectOneWriter() {
	c.t.Helper()
	all := writes(c.t, c.audit)
	if wrong := twoWriters(all); len(wrong) > 0 {
		c.t.Errorf("%d of %d writes are wrong:\n%s", len(wrong), len(all), strings.Join(wrong[:min(10, len(wrong))], "\n"))
	}
	c.t.Logf("one writer at a time in %d writes", len(all))
}

func TestTheJudgeSeesTwoWriters(t *testing.T) {
	lease := func(user, name string) write { return write{user: user, resource: "leases", name: name, holder: user} }
	child := func(user string) write {
		return write{user: user, resource: "configmaps", namespace: "n1", name: "web"}
	}
	half := "myweb-operator-0000000000000000-7fffffffffffffff" // n1 is in it
	for name, test := range map[string]struct {
		all   []write
		wrong int
	}{
		"one":              {[]write{lease("replica-0", half), child("replica-0")}, 0},
		"a takeover":       {[]write{lease("replica-0", half), child("replica-0"), lease("replica-1", half), child("replica-1")}, 0},
		"no lease":         {[]write{child("replica-0")}, 1},
		"of other hashes":  {[]write{lease("replica-0", "myweb-operator-8000000000000000-ffffffffffffffff"), child("replica-0")}, 1},
		"a zombie":         {[]write{lease("replica-0", half), child("replica-0"), lease("replica-1", half), child("replica-1"), child("replica-0")}, 1},
		"another number":   {[]write{lease("replica-0", half), child("replica-0"), lease("replica-1", "myweb-operator"), child("replica-1"), child("replica-0")}, 1},
		"it acquires anew": {[]write{lease("replica-0", half), child("replica-0"), lease("replica-1", half), child("replica-1"), lease("replica-0", half), child("replica-0")}, 0},
		"a person":         {[]write{child("admin")}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			for at := range test.all {
				test.all[at].version = int64(at)
			}
			if wrong := twoWriters(test.all); len(wrong) != test.wrong {
				t.Errorf("%d are wrong, want %d: %v", len(wrong), test.wrong, wrong)
			}
		})
	}
}
