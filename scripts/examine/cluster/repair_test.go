package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A fault is a damage to a running cluster that `up` must repair.
type fault struct {
	make func(t *testing.T, c *Cluster)
	// losesData means that the fault also loses the objects.
	losesData bool
}

func killing(names ...string) fault {
	return fault{make: func(t *testing.T, c *Cluster) { kill(t, c, names...) }}
}

func removing(path ...string) fault {
	return fault{make: func(t *testing.T, c *Cluster) {
		if err := os.RemoveAll(filepath.Join(c.state, filepath.Join(path...))); err != nil {
			t.Fatal(err)
		}
	}}
}

func overwriting(text string, path ...string) fault {
	return fault{make: func(t *testing.T, c *Cluster) {
		if err := os.WriteFile(filepath.Join(c.state, filepath.Join(path...)), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}}
}

func and(faults ...fault) fault {
	return fault{make: func(t *testing.T, c *Cluster) {
		for _, f := range faults {
			f.make(t, c)
		}
	}}
}

func losing(f fault) fault { f.losesData = true; return f }

var faults = map[string]fault{
	"etcd is killed":                   killing("etcd"),
	"the API server is killed":         killing("kube-apiserver"),
	"the controller manager is killed": killing("kube-controller-manager"),
	"the scheduler is killed":          killing("kube-scheduler"),
	"kwok is killed":                   killing("kwok"),
	"the machine restarts: all is killed, and strangers have the process numbers": {make: rebootAmongStrangers},
	"a stranger takes the ports of a stopped API server":                          {make: takePort},
	"a stranger takes a port of the scheduler as the API server starts":           {make: takePortLate},
	"the kubeconfig is missing, and that of the scheduler half-written": and(removing("kubeconfig"),
		overwriting("apiVersion: v1\nkin", "cluster", "scheduler.kubeconfig")),
	"the list of ports is half-written":     overwriting(`{"apiserver": 2`, "cluster", "ports.json"),
	"a certificate is missing":              removing("cluster", "pki", "etcd.crt"),
	"a power cut left empty keys":           and(killing("kwok"), overwriting("", "cluster", "pki", "ca.key")),
	"the file of a process number is lost":  removing("cluster", "etcd.pid"),
	"a process number was not written":      overwriting("", "cluster", "kwok.pid"),
	"a component has old flags":             {make: startWithOldFlags},
	"an older workshop started the cluster": {make: writeOldRecords},
	"one authority signs for all servers":   {make: oneAuthority},
	"the folder of the cluster was removed": losing(removing("cluster")),
	"etcd and its data were removed":        losing(and(killing("etcd"), removing("cluster", "etcd"))),
}

func TestUpRepairs(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	up(t, c)
	user, err := c.AddUser(t.Context(), "jo", "learners")
	if err != nil {
		t.Fatal(err)
	}
	mustKubectl(t, c.Kubeconfig(), "create", "configmap", "kept")
	for what, fault := range faults {
		t.Run(what, func(t *testing.T) {
			fault.make(t, c)
			c := New(bin, c.state, t.Logf) // like a later command, this knows the files alone
			up(t, c)
			mustBeWhole(t, c)
			if out, there := kubectl(t, c.Kubeconfig(), "get", "configmap", "kept"); there == fault.losesData {
				t.Errorf("the objects made before: %s", out)
			}
			if fault.losesData {
				mustKubectl(t, c.Kubeconfig(), "create", "configmap", "kept")
			}
			if who := mustKubectl(t, user, "auth", "whoami"); !strings.Contains(who, "jo") ||
				!strings.Contains(who, "learners") {
				t.Errorf("the kubeconfig of the user leads to:\n%s", who)
			}
		})
	}
}

// stranger starts an unrelated process that the cluster must never touch.
func stranger(t *testing.T) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sleep", "3600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cmd.Process.Signal(syscall.Signal(0)); err != nil {
			t.Errorf("a stranger's process was killed: %v", err)
		}
		_ = cmd.Process.Kill()
		if state, _ := cmd.Process.Wait(); state.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Errorf("a stranger's process was ended: %v", state)
		}
	})
	return cmd
}

func rebootAmongStrangers(t *testing.T, c *Cluster) {
	kill(t, c, names(c)...)
	for _, name := range names(c) {
		r, err := c.owner(name)
		if err != nil {
			t.Fatal(err)
		}
		r.PID = stranger(t).Process.Pid
		data, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(c.pidFile(name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if running, _ := c.Running(); running != 0 {
		t.Errorf("%d strangers are taken for components", running)
	}
}

// writeOldRecords leaves the .pid files as they were when they held a number and a mark.
func writeOldRecords(t *testing.T, c *Cluster) {
	for _, name := range names(c) {
		old := fmt.Sprintf("%d 0123456789abcdef\n", c.pid(name))
		if err := os.WriteFile(c.pidFile(name), []byte(old), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func takePort(t *testing.T, c *Cluster) {
	kill(t, c, "kube-apiserver", "etcd")
	if err := c.readPorts(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"apiserver", "etcd-peer"} {
		taken, err := net.Listen("tcp", fmt.Sprintf("%s:%d", loopback, c.ports[name]))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { taken.Close() })
	}
}

// takePortLate takes the port of a component when the ports are chosen and the component does not run yet.
func takePortLate(t *testing.T, c *Cluster) {
	kill(t, c, names(c)...)
	if err := c.readPorts(); err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("%s:%d", loopback, c.ports["scheduler"])
	go func() {
		for c.pid("etcd") == 0 && t.Context().Err() == nil {
			time.Sleep(time.Millisecond)
		}
		taken, err := net.Listen("tcp", address)
		if err != nil {
			t.Errorf("the scheduler was faster: %v", err)
			return
		}
		<-t.Context().Done()
		taken.Close()
	}()
}

// startWithOldFlags replaces kwok by a kwok that simulates other stages, as an older version of the workshop would
// have.
func startWithOldFlags(t *testing.T, c *Cluster) {
	kill(t, c, "kwok")
	if err := c.readPorts(); err != nil {
		t.Fatal(err)
	}
	old := c.components()[4]
	old.args = append(slices.Clone(old.args), "--node-lease-duration-seconds=41")
	if err := c.start(old); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if old := processesWith(c, "--node-lease-duration-seconds=41"); len(old) > 0 {
			t.Errorf("the processes %v run with the old flags", old)
		}
	})
}

func TestAnUpThatIsCutOffCanBeTakenUp(t *testing.T) {
	t.Parallel()
	moments := map[string]struct {
		seen string
		end  os.Signal
		// reboot kills what the first `up` had started, too.
		reboot bool
	}{
		"a power cut at the first start of etcd":   {seen: "etcd/member", end: os.Kill, reboot: true},
		"Ctrl-C when the API server starts":        {seen: "kube-apiserver.pid", end: os.Interrupt},
		"kill -9 when the controllers are started": {seen: "kube-scheduler.pid", end: os.Kill},
	}
	for what, moment := range moments {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			other, output := upElsewhere(t, c)
			eventually(t, moment.seen, func() bool {
				_, err := os.Stat(filepath.Join(c.dir(), moment.seen))
				return err == nil
			})
			if err := other.Process.Signal(moment.end); err != nil {
				t.Fatal(err)
			}
			if err := other.Wait(); err == nil {
				t.Fatalf("the first `up` was not cut off: %s", output)
			}
			if moment.reboot {
				for _, pid := range processes(c) {
					_ = syscall.Kill(pid, syscall.SIGKILL)
				}
			}
			up(t, c)
			mustBeWhole(t, c)
		})
	}
}

// The test makes the files that a kill -9 between two certificates leaves. Writing them takes some milliseconds: too
// short for a kill to hit.
func TestHalfMadeCertificates(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	dir := filepath.Join(c.dir(), "pki.new")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := newAuthority(dir, "ca"); err != nil {
		t.Fatal(err)
	}
	up(t, c)
	mustBeWhole(t, c)
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("%s is left: %v", dir, err)
	}
}

func TestDamagedData(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	for _, name := range []string{"member/snap/db", "member/wal/0000000000000000-0000000000000000.wal"} {
		path := filepath.Join(c.dir(), "etcd", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(strings.Repeat("half", 100)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(c.installedFile(), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	err := c.Up(t.Context())
	if err == nil || !strings.Contains(err.Error(), c.logFile("etcd")) || !strings.Contains(err.Error(), c.Fixes.Damaged) {
		t.Errorf("etcd cannot read the data of a cluster that was in use, `up` says: %v", err)
	}
	if err := os.WriteFile(c.logFile("etcd"), []byte("\x1b[2Jcame\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := c.Ended(); err == nil || strings.Contains(err.Error(), "\x1b") || !strings.Contains(err.Error(), "came") {
		t.Errorf("the last line of a log: %q", err)
	}
	if _, err := os.Stat(filepath.Join(c.dir(), "etcd", "member", "snap", "db")); err != nil {
		t.Errorf("the data were touched: %v", err)
	}
	if err := os.Remove(c.installedFile()); err != nil { // now they are the rest of a first start
		t.Fatal(err)
	}
	up(t, c)
	mustBeWhole(t, c)
}

func TestCommandsAtOnce(t *testing.T) {
	t.Parallel()
	one, two := newCluster(t), newCluster(t)
	for _, c := range []*Cluster{one, one, two} {
		other, output := upElsewhere(t, c)
		defer func() {
			if t.Failed() {
				t.Log(output)
			}
		}()
		t.Cleanup(func() { _ = other.Process.Kill() })
		defer func() { _ = other.Wait() }() // the state of the clusters is the result
	}
	up(t, one) // a third `up` of the same cluster
	up(t, two)
	mustBeWhole(t, one)
	mustBeWhole(t, two)
	if err := one.Down(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := append(files(one.state), fmt.Sprint(processes(one))); !slices.Equal(left, []string{"[]"}) {
		t.Errorf("`down` left %q", left)
	}
	mustBeWhole(t, two)
}

func TestDownFindsTheProcessesOfARemovedFolder(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	up(t, c)
	before := processes(c)
	if err := os.RemoveAll(c.state); err != nil {
		t.Fatal(err)
	}
	var output strings.Builder
	if err := c.Status(t.Context(), &output); err == nil || !strings.Contains(err.Error(), c.Fixes.Remove) {
		t.Errorf("status of %v without a folder: %v", before, err)
	}
	if err := c.Down(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := processes(c); len(before) != 5 || len(left) != 0 {
		t.Errorf("of %v are left %v", before, left)
	}
}

func TestDownEndsWhatTheLabKeeps(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	kept := New(c.bin, c.Kept(), t.Logf)
	up(t, kept)
	run, err := TryKept(c.Kept())
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Down(t.Context()); !errors.Is(err, ErrBusy) || len(processes(kept)) != 5 {
		t.Errorf("while a run has it: %v, %d processes", err, len(processes(kept)))
	}
	if err := run.Close(); err != nil {
		t.Fatal(err)
	}
	if err := c.Down(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := append(files(c.state), fmt.Sprint(processes(kept))); !slices.Equal(left, []string{"[]"}) {
		t.Errorf("`down` left %q", left)
	}
}

func TestAFullDisk(t *testing.T) {
	t.Parallel()
	small := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=40m", "none", small).CombinedOutput(); err != nil {
		t.Skipf("cannot make a small disk here: %s", out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", small).CombinedOutput(); err != nil {
			t.Errorf("umount: %s", out)
		}
	})
	c := New(bin, small, t.Logf)
	// The error reports the full disk twice: by the disk's free space, and by the end of etcd's log, which has room for
	// the message.
	if err := c.Up(t.Context()); err == nil || strings.Count(err.Error(), "no space left on device") < 2 {
		t.Errorf("etcd has no space: %v", err)
	}
	if err := os.WriteFile(filepath.Join(small, "rest"), make([]byte, 40<<20), 0o600); err == nil {
		t.Error("the disk is not full")
	}
	if err := c.Up(t.Context()); err == nil || !strings.Contains(err.Error(), "no space left on device") {
		t.Errorf("nothing can be written: %v", err)
	}
	if err := os.Remove(filepath.Join(small, "rest")); err != nil {
		t.Fatal(err)
	}
	if err := c.Down(t.Context()); err != nil {
		t.Error(err)
	}
	if left := processes(c); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

func TestPortsThatAreNoneAreChosenAnew(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	if err := os.MkdirAll(c.dir(), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"", "{", "[]", `{"etcd": -1, "apiserver": 99999999}`, `{"etcd": "x"}`, "\x00\x00"} {
		if err := os.WriteFile(c.portsFile(), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := c.choosePorts(); err != nil {
			t.Errorf("%q: %v", text, err)
		}
		var ports map[string]int
		data, err := os.ReadFile(c.portsFile())
		if err == nil {
			err = json.Unmarshal(data, &ports)
		}
		different := map[int]bool{}
		for _, port := range ports {
			different[port] = port > 1024 && port < 32768
		}
		if err != nil || len(different) != 5 {
			t.Errorf("%q became %v (%v)", text, ports, err)
		}
	}
}

func TestAReaderNeverSeesHalfAKubeconfig(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	if err := c.writeFiles(); err != nil {
		t.Fatal(err)
	}
	c.ports["apiserver"] = 1
	if err := c.writeKubeconfigs(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		for c.ports["apiserver"] < 500 {
			c.ports["apiserver"]++
			if err := c.writeKubeconfigs(); err != nil {
				done <- err
			}
		}
		close(done)
	}()
	for {
		if k, err := readKubeconfig(c.Kubeconfig()); err != nil || len(k.Clusters) != 1 || len(k.Contexts) != 1 {
			t.Fatalf("a reader saw %+v (%v)", k, err)
		}
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			return
		default:
		}
	}
}
