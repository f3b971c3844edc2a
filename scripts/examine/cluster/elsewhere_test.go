package cluster

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"example.com/operator-workshop/scripts/examine/lock"
)

// fakeRecord is a record that another container or machine may have written about a process with this number.
func fakeRecord(pid int, boot, host string) string {
	return fmt.Sprintf(`{"pid": %d, "host": %q, "boot": %q, "namespace": "pid:[4026530000]", "start": "123456",
		"executable": "/workspaces/operator-workshop/bin/etcd", "mark": "0123456789abcdef"}`, pid, host, boot)
}

// Each .pid file names a process of this machine that the cluster did not start. No command may signal it.
func TestNoCommandSignalsAStranger(t *testing.T) {
	t.Parallel()
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		t.Skip("this system has no PID namespaces: ", err)
	}
	thisBoot := string(bytes.TrimSpace(boot))
	victim := stranger(t).Process.Pid
	own, _ := os.Readlink("/proc/self/ns/pid")
	for what, file := range map[string]struct {
		text, says string
		ended      bool
	}{
		"another PID namespace":     {text: fakeRecord(victim, thisBoot, "devcontainer-1"), says: "devcontainer-1"},
		"another machine":           {text: fakeRecord(victim, "another boot", "pc-7"), says: "pc-7"},
		"another machine, no locks": {text: fakeRecord(victim, "another boot", "pc-7"), says: "pc-7", ended: true},
		"a number that was reused": {says: "etcd.pid",
			text: strings.Replace(fakeRecord(victim, thisBoot, "here"), "pid:[4026530000]", own, 1)},
		"an older workshop": {text: fmt.Sprintf("%d 0123456789abcdef\n", victim), says: "etcd.pid"},
		"a number alone":    {text: fmt.Sprint(victim), says: "etcd.pid"},
		"half a file":       {text: fmt.Sprintf(`{"pid": %d, "ho`, victim), says: "etcd.pid"},
		"an empty file":     {text: "", says: "etcd.pid"},
		"no text":           {text: "\x00\xff[[", says: "etcd.pid"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			if err := os.MkdirAll(filepath.Join(c.dir(), "etcd", "member"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(c.pidFile("etcd"), []byte(file.text), 0o600); err != nil {
				t.Fatal(err)
			}
			held, err := lock.Try(c.pidFile("etcd"))
			if err != nil {
				t.Fatal(err)
			}
			if file.ended {
				_ = held.Close() // a lock ends with its file
			}
			before := files(c.state)
			isRefused(t, c, file.says)
			if after := files(c.state); !slices.Equal(before, slices.DeleteFunc(after, func(path string) bool {
				return path == c.lockFile() || strings.HasPrefix(path, filepath.Join(c.dir(), "pki"))
			})) {
				t.Errorf("the files %q became %q", before, after)
			}
			_ = held.Close() // it may be closed already
			if err := os.RemoveAll(c.dir()); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// isRefused checks that up, down and status of a cluster fail with a one-sentence message.
func isRefused(t *testing.T, c *Cluster, says string) {
	t.Helper()
	for command, err := range map[string]error{
		"up": c.Up(t.Context()), "down": c.Down(t.Context()), "status": c.Status(t.Context(), io.Discard),
	} {
		if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s does not say %q in one line: %v", command, says, err)
		}
	}
}

// A PID namespace with its own /proc stands for a container that shares the folder.
func TestAClusterOfAContainer(t *testing.T) {
	t.Parallel()
	container := exec.Command("unshare", "--pid", "--fork", "--mount-proc", "--kill-child",
		"sh", "-c", `"$0" && echo started && exec sleep 3600`, os.Args[0])
	if out, err := exec.Command("unshare", "--pid", "--fork", "--mount-proc", "true").CombinedOutput(); err != nil {
		t.Skipf("no PID namespace can be made here: %s", out)
	}
	c := newCluster(t)
	var output strings.Builder
	container.Env = append(os.Environ(), "CLUSTER_TEST_UP="+c.state)
	container.Stderr = &output
	out, err := container.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := container.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = container.Process.Kill() })
	if line := make([]byte, 8); !readFull(out, line) || string(line) != "started\n" {
		t.Fatalf("the container printed %q\n%s", line, output.String())
	}
	inside := seen(c)
	mustKubectl(t, c.Kubeconfig(), "create", "configmap", "kept")
	host, _ := os.Hostname()
	isRefused(t, c, host)
	if now := seen(c); len(inside) != 5 || !slices.Equal(now, inside) {
		t.Fatalf("of the processes %v of the container run %v", inside, now)
	}
	mustKubectl(t, c.Kubeconfig(), "get", "configmap", "kept")

	_ = container.Process.Kill()
	_ = container.Wait()
	eventually(t, "the container has ended", func() bool { return c.Elsewhere() == nil })
	up(t, c)
	mustBeWhole(t, c)
	mustKubectl(t, c.Kubeconfig(), "get", "configmap", "kept")
}

func readFull(from io.Reader, data []byte) bool {
	_, err := io.ReadFull(from, data)
	return err == nil
}

// seen returns the processes of a cluster in all PID namespaces that /proc shows.
func seen(c *Cluster) (found []string) {
	commands, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range commands {
		data, _ := os.ReadFile(file)
		if bytes.HasPrefix(data, []byte(bin+"/")) && bytes.Contains(data, []byte(c.dir()+"/")) {
			found = append(found, filepath.Base(filepath.Dir(file)))
		}
	}
	return found
}

// Another user starts a copy of a program of the cluster with the same arguments. Commands ignore that process. When
// the owner of the cluster starts such a process, it is a stray, and the commands end it.
func TestProcessesOfOtherUsersAreSkipped(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can start a process of another user")
	}
	shell, err := os.ReadFile("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	c := newCluster(t)
	c.bin = t.TempDir()
	for dir := c.bin; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(c.bin, "etcd"), shell, 0o755); err != nil {
		t.Fatal(err)
	}
	start := func(uid uint32) (*exec.Cmd, io.Closer) {
		cmd := exec.Command(filepath.Join(c.bin, "etcd"), "-c", "read line", "--data-dir="+filepath.Join(c.dir(), "etcd"))
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		input, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd, input
	}
	theirs, input := start(65534)
	ours, _ := start(0)
	if err := c.Down(t.Context()); err != nil {
		t.Error(err)
	}
	if err := ours.Wait(); err == nil || err.Error() != "signal: killed" {
		t.Errorf("a process of this cluster without a .pid file: %v", err)
	}
	if err := c.Status(t.Context(), io.Discard); err == nil || !strings.Contains(err.Error(), ErrNoCluster.Error()) {
		t.Errorf("status: %v", err)
	}
	if err := input.Close(); err != nil {
		t.Fatal(err)
	}
	if err := theirs.Wait(); err == nil || err.Error() != "exit status 1" { // `read` at the end of its input
		t.Errorf("the process of another user: %v", err)
	}
}
