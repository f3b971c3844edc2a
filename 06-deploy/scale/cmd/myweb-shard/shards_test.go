package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/operator-workshop/06-deploy/scale/shard"
)

// Each MyWeb is served by the replica of its shard, and by no other, while users edit MyWebs all the time.
func TestNoMyWebIsForgottenOrServedTwice(t *testing.T) {
	t.Parallel()
	c := newCluster(t, gate)
	c.fill("team-", 20, 5)
	for _, phase := range []struct {
		name string
		do   func()
	}{
		{"two shards", func() {
			c.start("replica-0", "--shard=0/2")
			c.start("replica-1", "--shard=1/2")
		}},
		{"kill -9 of a replica, and another one waits for the shard", func() {
			c.start("replica-2", "--shard=0/2")
			c.processes["replica-0"].Kill()
			c.eventuallyHolds("replica-2")
		}},
		{"a replica that was frozen until another one had its lease", func() {
			c.start("replica-3", "--shard=0/2")
			frozen := c.processes["replica-2"].Signal(syscall.SIGSTOP)
			c.eventuallyHolds("replica-3")
			c.Eventually(frozen.Signal(syscall.SIGCONT), "90s").Should(gexec.Exit(), "a replica without its lease ends")
		}},
		{"three shards in place of two, of which one is killed and one is frozen", func() {
			c.start("replica-4", "--shard=0/3")
			c.start("replica-5", "--shard=1/3")
			c.start("replica-6", "--shard=2/3")
			c.processes["replica-3"].Kill()
			frozen := c.processes["replica-1"].Signal(syscall.SIGSTOP)
			c.eventuallyHolds("replica-4", "replica-5", "replica-6")
			c.Eventually(frozen.Signal(syscall.SIGCONT), "90s").Should(gexec.Exit(), "its lease has no other holder")
		}},
		{"two shards in place of three", func() {
			c.start("replica-7", "--shard=0/2")
			c.start("replica-8", "--shard=1/2")
			c.processes["replica-4"].Terminate()
			c.processes["replica-5"].Terminate()
			c.processes["replica-6"].Kill()
			c.eventuallyHolds("replica-7", "replica-8")
		}},
		{"one leader in place of two shards", func() {
			c.start("replica-9")
			c.processes["replica-7"].Terminate()
			c.processes["replica-8"].Terminate()
			c.eventuallyHolds("replica-9")
		}},
	} {
		stop := c.load()
		phase.do()
		edits := stop()
		c.eventuallyServed()
		t.Logf("%s: served, after %d edits", phase.name, edits)
		c.expectOneWriter()
		if t.Failed() {
			t.FailNow()
		}
	}
}

// A namespace moves to another shard when the bounds change.
func TestANamespaceMoves(t *testing.T) {
	t.Parallel()
	c := newCluster(t, gate)
	c.fill("n", 12, 1) // all hashes are in the lower half
	c.start("replica-0", "--shard=0/2")
	c.start("replica-1", "--shard=1/2")
	c.eventuallyHolds("replica-0", "replica-1")
	c.eventuallyServed()
	if n := c.writers()["replica-1"]; n != 0 {
		t.Fatalf("the upper half wrote %d times: the namespaces are not alike any more", n)
	}
	stop := c.load()
	bound := "--bounds=" + middle(c)
	c.start("replica-2", "--shard=0/2", bound)
	c.start("replica-3", "--shard=1/2", bound)
	c.processes["replica-0"].Terminate()
	c.processes["replica-1"].Terminate()
	c.eventuallyHolds("replica-2", "replica-3")
	stop()
	for _, web := range c.webs {
		c.edit(web, "last")
	}
	c.eventuallyServed()
	c.expectOneWriter()
	wrote := c.writers()
	if wrote["replica-2"] == 0 || wrote["replica-3"] == 0 {
		t.Errorf("after the bounds moved, the shards wrote %d and %d times", wrote["replica-2"], wrote["replica-3"])
	}
}

// Without the gate the operator says so in one sentence, and one replica works for all.
func TestAnAPIServerWithoutTheGate(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "")
	c.fill("team-", 6, 1)
	c.start("replica-0", "--shard=0/2")
	c.start("replica-1", "--shard=1/2")
	for _, user := range []string{"replica-0", "replica-1"} {
		c.processes[user].EventuallyPrints("The API server does not filter by shardSelector", "90s")
	}
	c.eventuallyServed()
	c.expectOneWriter()
	if wrote := c.writers(); len(wrote) != 1 {
		t.Errorf("one replica leads, but these wrote: %v", wrote)
	}
	c.Expect(c.holders()).To(gomega.HaveLen(1))

	// An API server that stops filtering under a running operator: the informer removes the objects of other shards.
	part, err := shard.Parse("1/2", "")
	c.Expect(err).NotTo(gomega.HaveOccurred())
	if supported, err := part.Supported(t.Context(), c.cfg); supported || err != nil {
		t.Errorf("supported: %v, %v", supported, err)
	}
	maps := kubernetes.NewForConfigOrDie(c.cfg).CoreV1().ConfigMaps("")
	informer := part.NewInformer(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return maps.List(ctx, o) },
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return maps.Watch(ctx, o)
		},
	}, &corev1.ConfigMap{}, 0, nil)
	go informer.RunWithContext(t.Context())
	c.fill("late-", 6, 1) // these arrive by the watch
	c.eventuallyServed()
	c.Eventually(func() (differences []string) {
		has := map[string]bool{}
		for _, o := range informer.GetStore().List() {
			page := o.(*corev1.ConfigMap)
			if has[page.Namespace+"/"+page.Name] = true; !part.Has(page.Namespace) {
				differences = append(differences, page.Namespace+" is of another shard")
			}
		}
		for _, web := range c.webs {
			if part.Has(web.Namespace) != has[web.Namespace+"/"+web.Name] {
				differences = append(differences, web.String())
			}
		}
		return differences
	}).Should(gomega.BeEmpty())
}

// The list of a custom resource has no shardInfo, although it is filtered: an operator that waits for it would never work
// in shards.
func TestShardInfo(t *testing.T) {
	t.Parallel()
	c := newCluster(t, gate)
	c.fill("team-", 8, 1)
	c.start("replica-0")
	c.eventuallyServed()
	part, err := shard.Parse("0/2", "")
	c.Expect(err).NotTo(gomega.HaveOccurred())
	if supported, err := part.Supported(t.Context(), c.cfg); !supported || err != nil {
		t.Errorf("supported: %v, %v", supported, err)
	}
	kube := kubernetes.NewForConfigOrDie(c.cfg)
	for path, info := range map[string]bool{"/api/v1/configmaps": true, "/apis/apps/v1/deployments": true,
		"/apis/operator.k8s-summit.org/v1/mywebs": false} {
		var list metav1.PartialObjectMetadataList
		raw, err := kube.CoreV1().RESTClient().Get().AbsPath(path).Param("shardSelector", part.Selector()).DoRaw(t.Context())
		c.Expect(err).NotTo(gomega.HaveOccurred())
		c.Expect(json.Unmarshal(raw, &list)).To(gomega.Succeed())
		if (list.ShardInfo != nil) != info {
			t.Errorf("%s has shardInfo: %v, want %v", path, list.ShardInfo != nil, info)
		}
		for _, o := range list.Items {
			if !part.Has(o.Namespace) {
				t.Errorf("%s has an object in %s, of another shard", path, o.Namespace)
			}
		}
	}
}

// eventuallyHolds waits until each of these replicas holds a lease.
func (c *cluster) eventuallyHolds(users ...string) {
	c.t.Helper()
	for _, user := range users {
		c.Eventually(c.holders).Should(gomega.ContainElement(user))
	}
}

// holders are the replicas that hold a lease.
func (c *cluster) holders() (users []string) {
	var leases coordinationv1.LeaseList
	c.Expect(c.List(c.t.Context(), &leases, client.InNamespace("default"))).To(gomega.Succeed())
	for _, lease := range leases.Items {
		if user, _, held := strings.Cut(*lease.Spec.HolderIdentity, "_"); held {
			users = append(users, user)
		}
	}
	return users
}

// writers are the replicas that wrote, with the number of their writes.
func (c *cluster) writers() map[string]int {
	n := map[string]int{}
	for _, w := range writes(c.t, c.audit) {
		if strings.HasPrefix(w.user, "replica-") && w.resource != "leases" {
			n[w.user]++
		}
	}
	return n
}

// middle is the first hash of the upper half of the namespaces.
func middle(c *cluster) string {
	var hashes []uint64
	for _, web := range c.webs {
		hashes = append(hashes, shard.Hash(web.Namespace))
	}
	slices.Sort(hashes)
	return fmt.Sprintf("%#x", hashes[len(hashes)/2])
}
