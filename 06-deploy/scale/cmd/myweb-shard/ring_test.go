package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"

	webv1 "example.com/operator-workshop/06-deploy/scale/api/v1"
	"example.com/operator-workshop/06-deploy/scale/internal/ring"
	"example.com/operator-workshop/06-deploy/scale/internal/testenv"
)

const ringLabel = "shard.alpha.sharding.timebertt.dev/" + ring.Name

// The same, with a sharder that labels the MyWebs: each write to a child is of the replica that the MyWeb's label names.
func TestAControllerRingForgetsNoMyWebAndServesNoneTwice(t *testing.T) {
	if os.Getenv("LONG") == "" {
		t.Skip("it compiles the sharder: LONG=1 runs it")
	}
	sharder, err := ring.Build(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c := newCluster(t, "", filepath.Join("../..", ring.CRD))
	cmd, err := ring.Start(t.Context(), c, sharder, testenv.WriteKubeconfig(t, c.cfg, ""), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	member := "--ring=" + ring.Name
	c.fill("team-", 10, 5)
	for _, phase := range []struct {
		name string
		do   func()
	}{
		{"two members", func() {
			c.start("replica-0", member)
			c.start("replica-1", member)
			c.eventuallyMembers("replica-0", "replica-1")
		}},
		{"a third one joins", func() {
			c.start("replica-2", member)
			c.eventuallyMembers("replica-0", "replica-1", "replica-2")
		}},
		{"kill -9 of a member", func() {
			c.processes["replica-0"].Kill()
			c.eventuallyMembers("replica-1", "replica-2")
		}},
		{"a member is frozen until another one has its MyWebs", func() {
			frozen := c.processes["replica-1"].Signal(syscall.SIGSTOP)
			c.eventuallyMembers("replica-2")
			c.Eventually(frozen.Signal(syscall.SIGCONT), "90s").Should(gexec.Exit(), "a member without its lease ends")
		}},
	} {
		stop := c.load()
		phase.do()
		edits := stop()
		c.eventuallyServed()
		t.Logf("%s: served, after %d edits", phase.name, edits)
		if wrong, all := strangers(writes(t, c.audit)); len(wrong) > 0 {
			t.Fatalf("%d of %d writes are of a replica that the label does not name:\n%s", len(wrong), all,
				strings.Join(wrong[:min(10, len(wrong))], "\n"))
		}
	}
}

// eventuallyMembers waits until these replicas have all MyWebs.
func (c *cluster) eventuallyMembers(want ...string) {
	c.t.Helper()
	c.Eventually(func() map[string]bool {
		var webs webv1.MyWebList
		c.Expect(c.List(c.t.Context(), &webs)).To(gomega.Succeed())
		have := map[string]bool{}
		for _, web := range webs.Items {
			have[web.Labels[ringLabel]] = true
		}
		return have
	}).Should(gomega.Equal(set(want)))
}

func set(names []string) map[string]bool {
	has := map[string]bool{}
	for _, name := range names {
		has[name] = true
	}
	return has
}

// strangers returns the writes of replicas that the label of the MyWeb did not name at that moment.
func strangers(all []write) (wrong []string, n int) {
	labels := map[string]string{}
	for _, w := range all {
		key := w.namespace + "/" + w.name
		if w.resource == "mywebs" {
			if strings.HasPrefix(w.user, "replica-") && !w.status && labels[key] != w.user {
				wrong = append(wrong, w.user+" drained "+key+" of "+labels[key])
			}
			labels[key] = w.labels[ringLabel]
			continue
		}
		if w.resource == "leases" || !strings.HasPrefix(w.user, "replica-") {
			continue
		}
		if n++; labels[key] != w.user {
			wrong = append(wrong, w.user+" wrote "+w.resource+" "+key+" of "+labels[key])
		}
	}
	return wrong, n
}
