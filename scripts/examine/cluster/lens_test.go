package cluster

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/operator-workshop/scripts/examine/loop"
)

// seenByLens returns the changes in the ledger: program, verb, object, effect.
func seenByLens(t *testing.T, c *Cluster) (lines []string, last loop.Record) {
	t.Helper()
	if err := loop.Read(t.Context(), c.Ledger(), false, func(r loop.Record) error {
		if r.Changes() && r.By.Name == "kubectl" {
			lines, last = append(lines, r.By.Name+" "+r.Text()), r
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return lines, last
}

// TestLens uses a cluster through the lens, as users do.
func TestLens(t *testing.T) {
	t.Parallel()
	withLens := t.TempDir()
	for _, name := range append(Names(), "kubectl") {
		if err := os.Symlink(filepath.Join(bin, name), filepath.Join(withLens, name)); err != nil {
			t.Fatal(err)
		}
	}
	lens := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(withLens, Lens), "../cmd/lens")
	if out, err := lens.CombinedOutput(); err != nil {
		t.Fatalf("build the lens: %v\n%s", err, out)
	}
	c := newCluster(t)
	c.bin, c.WithLens = withLens, true
	up(t, c)
	mustKubectl(t, c.Kubeconfig(), "create", "configmap", "one", "-n", "default")
	mustKubectl(t, c.Kubeconfig(), "label", "configmap", "one", "-n", "default", "a=b")
	mustKubectl(t, c.Kubeconfig(), "label", "configmap", "one", "-n", "default", "a=b", "--overwrite")
	want := "kubectl create configmaps one 201 moved|kubectl patch configmaps one 200 moved"
	eventually(t, "the ledger has two changes", func() bool { lines, _ := seenByLens(t, c); return len(lines) == 2 })
	lines, last := seenByLens(t, c)
	if got := strings.Join(lines, "|"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if last.By.User != adminUser || last.By.Port == 0 || last.ResourceVersion == "" || last.Took <= 0 {
		t.Errorf("the record is not whole: %+v", last)
	}
	t.Run("a client is who its certificate says", func(t *testing.T) { lensKeepsIdentities(t, c) })
	t.Run("nothing of strangers is kept", func(t *testing.T) { lensKeepsNothingOfStrangers(t, c) })
	t.Run("watches can be frozen", func(t *testing.T) { lensFreezesWatches(t, c) })
	kill(t, c, Lens)
	if _, ok := kubectl(t, c.Kubeconfig(), "get", "nodes"); ok {
		t.Error("the lens is passed by")
	}
	up(t, c)
	mustKubectl(t, c.Kubeconfig(), "get", "configmap", "one", "-n", "default")
}

// lensKeepsIdentities checks that the API server identifies a client of the lens by its certificate alone.
func lensKeepsIdentities(t *testing.T, c *Cluster) {
	nodes := c.address() + "/api/v1/nodes"
	alice := usersClient(t, c, "alice")
	if err := healthy(t.Context(), alice, nodes); err == nil || !strings.Contains(err.Error(), "403") {
		t.Errorf("alice reads nodes: %v", err)
	}
	plain := usersClient(t, c, "bob")
	plain.Transport.(*http.Transport).TLSClientConfig.GetClientCertificate = nil
	for name, client := range map[string]*http.Client{"alice": alice, "a client without a certificate": plain} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, nodes, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("X-Remote-User", adminUser)
		request.Header.Set("X-Remote-Group", "system:masters")
		if _, err := answer(client, request); err == nil || !strings.Contains(err.Error(), ": 40") {
			t.Errorf("%s acts as the administrator: %v", name, err)
		}
	}
}

// lensFreezesWatches checks that a program gets no event while its watch is frozen, and gets the event when the freeze
// ends.
func lensFreezesWatches(t *testing.T, c *Cluster) {
	watch := exec.CommandContext(t.Context(), filepath.Join(bin, "kubectl"), "get", "configmaps", "-n", "default", "--watch")
	watch.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig(), "KUBECACHEDIR="+t.TempDir(), "KUBERC=off")
	if err := watch.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = watch.Process.Kill(); _ = watch.Wait() }()
	delivered := func(name string) (is bool) {
		err := loop.Read(t.Context(), c.Ledger(), false, func(r loop.Record) error {
			is = is || r.Is == loop.Event && r.Name == name || name == "" && r.Open && r.Resource == "configmaps"
			return nil
		})
		return is && err == nil
	}
	eventually(t, "the watch is open", func() bool { return delivered("") })
	if err := c.Signal(Lens, syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	n := 0
	withheld := func() string { return fmt.Sprintf("withheld-%d", n) }
	eventually(t, "an event is withheld for longer than any event takes", func() bool {
		n++
		mustKubectl(t, c.Kubeconfig(), "create", "configmap", withheld(), "-n", "default")
		for deadline := time.Now().Add(500 * time.Millisecond); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
			if delivered(withheld()) {
				return false
			}
		}
		return true
	})
	if err := c.Signal(Lens, syscall.SIGUSR2); err != nil {
		t.Fatal(err)
	}
	eventually(t, "both are noted", func() bool {
		var notes []string
		err := loop.Read(t.Context(), c.Ledger(), false, func(r loop.Record) error {
			if r.Is == loop.Note {
				notes = append(notes, r.Text())
			}
			return nil
		})
		return err == nil && len(notes) == 2 && strings.Contains(notes[0], "frozen") && strings.Contains(notes[1], "go on")
	})
	eventually(t, "the event is delivered", func() bool { return delivered(withheld()) })
}
