package cluster

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/operator-workshop/scripts/examine/lock"
	"example.com/operator-workshop/scripts/examine/process"
)

// bin holds the programs that these tests start.
var bin string

// TestMain finds the programs. It also lets this program act as another `up`.
func TestMain(m *testing.M) {
	var err error
	if bin, err = Programs(); err != nil {
		fmt.Fprintln(os.Stderr, "these tests need the programs of the local environment:", err)
		os.Exit(1)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	if state := os.Getenv("CLUSTER_TEST_UP"); state != "" {
		report := func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
		if err := New(bin, state, report).Up(ctx); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	stop()
	os.Exit(m.Run())
}

// newCluster returns a cluster whose folder has a difficult name. At the end of the test it removes the rest of the
// cluster.
func newCluster(t *testing.T) *Cluster {
	t.Helper()
	c := New(bin, filepath.Join(t.TempDir(), `a learner's "state", [1]`), t.Logf)
	t.Cleanup(func() {
		if err := c.Down(context.Background()); err != nil {
			t.Error(err)
		}
		if left := processes(c); len(left) > 0 {
			t.Errorf("processes outlive `down`: %v", left)
		}
		if left := files(c.state); len(left) > 0 {
			t.Errorf("files outlive `down`: %q", left)
		}
	})
	return c
}

func up(t *testing.T, c *Cluster) {
	t.Helper()
	if err := c.Up(t.Context()); err != nil {
		t.Fatalf("up: %v", err)
	}
}

// upElsewhere runs `up` in another process.
func upElsewhere(t *testing.T, c *Cluster) (other *exec.Cmd, output *strings.Builder) {
	t.Helper()
	other, output = exec.Command(os.Args[0]), &strings.Builder{}
	other.Env = append(os.Environ(), "CLUSTER_TEST_UP="+c.state)
	other.Stdout, other.Stderr = output, output
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	return other, output
}

// processes returns the numbers of all processes of a cluster, according to the system.
func processes(c *Cluster) []int { return processesWith(c, "") }

// processesWith returns the numbers of the processes of a cluster that have an argument.
func processesWith(c *Cluster, argument string) []int {
	var found []int
	for _, p := range process.Own(func(command string) bool {
		return strings.HasPrefix(command, bin+"/") && strings.Contains(command, c.state+"/") &&
			strings.Contains(command, argument)
	}) {
		found = append(found, p.PID)
	}
	slices.Sort(found)
	return found
}

func pids(c *Cluster) []int {
	var all []int
	for _, p := range c.components() {
		all = append(all, c.pid(p.name))
	}
	slices.Sort(all)
	return all
}

func files(dir string) []string {
	var found []string
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			found = append(found, path)
		}
		return nil
	})
	return found
}

// kill ends components with SIGKILL and waits until they are gone.
func kill(t *testing.T, c *Cluster, names ...string) {
	t.Helper()
	for _, name := range names {
		pid := c.pid(name)
		if pid == 0 {
			t.Fatalf("%s does not run", name)
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		eventually(t, name+" is gone", func() bool { held, err := lock.Held(c.pidFile(name)); return !held && err == nil })
	}
}

func names(c *Cluster) (all []string) {
	for _, p := range c.components() {
		all = append(all, p.name)
	}
	return all
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited a minute for: %s", what)
		}
	}
}

// kubectl runs kubectl with a kubeconfig and returns its output, and whether it succeeded.
func kubectl(t *testing.T, kubeconfig string, args ...string) (string, bool) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "kubectl"), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "KUBECACHEDIR="+t.TempDir(), "KUBERC=off")
	out, err := cmd.CombinedOutput()
	return string(out), err == nil
}

func mustKubectl(t *testing.T, kubeconfig string, args ...string) string {
	t.Helper()
	out, ok := kubectl(t, kubeconfig, args...)
	if !ok {
		t.Fatalf("kubectl %s: %s", strings.Join(args, " "), out)
	}
	return out
}

// mustBeWhole checks the properties that a reader relies on after `up`.
func mustBeWhole(t *testing.T, c *Cluster) {
	t.Helper()
	var status strings.Builder
	if err := New(bin, c.state, t.Logf).Status(t.Context(), &status); err != nil {
		t.Fatalf("%v\n%s", err, status.String())
	}
	if got, want := processes(c), pids(c); len(got) != 5 || !slices.Equal(got, want) {
		t.Errorf("processes %v run, those of the cluster are %v", got, want)
	}
	if nodes := mustKubectl(t, c.Kubeconfig(), "get", "nodes,storageclasses"); strings.Count(nodes, " Ready") != 3 ||
		!strings.Contains(nodes, "standard (default)") {
		t.Errorf("three ready nodes and a default StorageClass are expected:\n%s", nodes)
	}
}
