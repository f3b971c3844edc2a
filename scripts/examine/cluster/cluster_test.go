package cluster

import (
	"context"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/operator-workshop/scripts/examine/process"
)

func TestUpMakesACompleteControlPlane(t *testing.T) {
	// Settings of other programs, and a missing home folder, must not matter.
	t.Setenv("HOME", "")
	for name, value := range map[string]string{"ETCD_NAME": "other", "ETCD_LISTEN_CLIENT_URLS": "http://0.0.0.0:2379",
		"KWOK_SERVER_ADDRESS": "0.0.0.0:1", "HTTPS_PROXY": "http://127.0.0.1:1", "KUBECONFIG": "/nowhere"} {
		t.Setenv(name, value)
	}
	var pipe [2]int // as a lock of the command that calls Up: without O_CLOEXEC
	if err := errors.Join(syscall.Pipe(pipe[:]), syscall.SetNonblock(pipe[0], true)); err != nil {
		t.Fatal(err)
	}
	c := newCluster(t)
	up(t, c)
	mustBeWhole(t, c)
	t.Run("gets no open file of its caller", func(t *testing.T) { getsNoOpenFile(t, pipe) })
	t.Run("listens on loopback alone", func(t *testing.T) { listensOnLoopback(t, c) })
	t.Run("etcd wants a certificate", func(t *testing.T) { etcdRefusesStrangers(t, c) })
	t.Run("without a certificate nobody reads metrics or profiles", func(t *testing.T) { hidesInternals(t, c) })
	t.Run("the certificate of a user is for the API server alone", func(t *testing.T) { certificatesOfUsers(t, c) })
	t.Run("a new user may do what roles allow", func(t *testing.T) { rolesRule(t, c) })
	t.Run("status reports where everything is", func(t *testing.T) { statusReports(t, c) })
	t.Run("a second up changes nothing", func(t *testing.T) { upIsIdempotent(t, c) })
	t.Run("a CRD is known to the garbage collector at once", func(t *testing.T) { crdIsKnown(t, c) })
	t.Run("a CRD of more than 256 KiB is installed", func(t *testing.T) { largeCRD(t, c) })
	t.Run("a second command waits", func(t *testing.T) { upWaits(t, c) })
}

// getsNoOpenFile reads the end of a pipe: it comes when no process has the other end open.
func getsNoOpenFile(t *testing.T, pipe [2]int) {
	read := os.NewFile(uintptr(pipe[0]), "pipe")
	defer read.Close()
	err := errors.Join(syscall.Close(pipe[1]), read.SetReadDeadline(time.Now().Add(time.Second)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := read.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("a component has the pipe: %v", err)
	}
}

// listensOnLoopback reads from the kernel which addresses the processes of the cluster listen on.
func listensOnLoopback(t *testing.T, c *Cluster) {
	if _, err := os.Stat("/proc/net/tcp"); err != nil {
		t.Skip("this system does not tell:", err)
	}
	count := 0
	for _, pid := range processes(c) {
		ours := map[string]bool{}
		descriptors, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
		for _, fd := range descriptors {
			target, _ := os.Readlink(fd)
			ours[strings.TrimSuffix(strings.TrimPrefix(target, "socket:["), "]")] = true
		}
		for _, table := range []string{"tcp", "tcp6", "udp", "udp6"} {
			for _, address := range listeners(t, fmt.Sprintf("/proc/%d/net/%s", pid, table), ours) {
				if count++; !address.IsLoopback() {
					id, _ := process.Of(pid)
					t.Errorf("process %d listens on %s: %s", pid, address, id.Executable)
				}
			}
		}
	}
	if count != 5 {
		t.Errorf("%d sockets listen, the cluster has 5 ports", count)
	}
}

// listeners returns the addresses of the sockets in a table of the kernel that listen and are ours.
func listeners(t *testing.T, table string, ours map[string]bool) (found []net.IP) {
	data, err := os.ReadFile(table)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		const local, state, inode = 1, 3, 9
		if len(fields) <= inode || !ours[fields[inode]] || (fields[state] != "0A" && !strings.Contains(table, "udp")) {
			continue
		}
		address, _, _ := strings.Cut(fields[local], ":")
		ip, err := hex.DecodeString(address)
		if err != nil {
			t.Fatal(err)
		}
		for word := range slices.Chunk(ip, 4) { // the kernel prints words as the processor keeps them
			slices.Reverse(word)
		}
		found = append(found, ip)
	}
	return found
}

func etcdRefusesStrangers(t *testing.T, c *Cluster) {
	url := fmt.Sprintf("https://%s:%d/health", loopback, c.ports["etcd"])
	client, err := c.client()
	if err != nil {
		t.Fatal(err)
	}
	if err := healthy(t.Context(), client, url); err != nil {
		t.Errorf("with a certificate: %v", err)
	}
	stranger := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	if err := healthy(t.Context(), stranger, url); err == nil || !strings.Contains(err.Error(), "certificate required") {
		t.Errorf("without a certificate: %v", err)
	}
}

// hidesInternals sends requests to every port, as another user of the machine can.
func hidesInternals(t *testing.T, c *Cluster) {
	stranger := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	for port, number := range c.ports {
		for _, path := range []string{"/metrics", "/debug/pprof/", "/debug/pprof/heap"} {
			url := fmt.Sprintf("https://%s:%d%s", loopback, number, path)
			if err := healthy(t.Context(), stranger, url); err == nil {
				t.Errorf("port %s answers %s without a certificate", port, path)
			}
		}
	}
}

func rolesRule(t *testing.T, c *Cluster) {
	user, err := c.AddUser(t.Context(), "system:made.up_user-1", "learners")
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(user); err != nil || info.Mode() != 0o600 {
		t.Errorf("a private key is in %s with %v (%v)", user, info.Mode(), err)
	}
	out, ok := kubectl(t, user, "get", "pods")
	if ok || !strings.Contains(out, `User "system:made.up_user-1" cannot list resource "pods"`) {
		t.Errorf("without a role: %s", out)
	}
	mustKubectl(t, c.Kubeconfig(), "create", "rolebinding", "learners", "--clusterrole=view", "--group=learners")
	eventually(t, "the role is known", func() bool { _, ok := kubectl(t, user, "get", "pods"); return ok })
	if out, ok := kubectl(t, user, "create", "configmap", "x"); ok {
		t.Errorf("a reader wrote: %s", out)
	}
	eventually(t, "the request is in the audit log", func() bool {
		log, err := os.ReadFile(c.AuditLog())
		return err == nil && audited(t, string(log), "system:made.up_user-1", "create", "configmaps", 403)
	})
	for _, name := range []string{"", "..", "../x", "a/b", "-x", "a b", "é", strings.Repeat("x", 65)} {
		if _, err := c.AddUser(t.Context(), name); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", name)) {
			t.Errorf("the user name %q: %v", name, err)
		}
	}
}

func audited(t *testing.T, log, user, verb, resource string, code int) bool {
	for line := range strings.Lines(log) {
		var event struct {
			Level, Verb    string
			User           struct{ Username string }
			ObjectRef      struct{ Resource string }
			ResponseStatus struct{ Code int }
		}
		if !strings.HasSuffix(line, "\n") || json.Unmarshal([]byte(line), &event) != nil {
			continue
		}
		if event.Level != "Metadata" {
			t.Fatalf("level %s: %s", event.Level, line)
		}
		if event.User.Username == user && event.Verb == verb && event.ObjectRef.Resource == resource &&
			event.ResponseStatus.Code == code {
			return true
		}
	}
	return false
}

func statusReports(t *testing.T, c *Cluster) {
	var out strings.Builder
	if err := c.Status(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	for _, text := range append(names(c), c.Kubeconfig(), c.AuditLog(), filepath.Join(c.dir(), "logs"), "3 of 3 ready") {
		if !strings.Contains(out.String(), text) {
			t.Errorf("status does not say %q:\n%s", text, out.String())
		}
	}
	kill(t, c, "kube-scheduler")
	out.Reset()
	err := c.Status(t.Context(), &out)
	if err == nil || !strings.Contains(err.Error(), "1 of 5 components") || !strings.Contains(out.String(), "stopped") {
		t.Errorf("status of a cluster without a scheduler: %v\n%s", err, out.String())
	}
	up(t, c)
}

func upIsIdempotent(t *testing.T, c *Cluster) {
	before := pids(c)
	mustKubectl(t, c.Kubeconfig(), "config", "set-context", "--current", "--namespace=kube-system")
	mustKubectl(t, c.Kubeconfig(), "cordon", "node-2") // an exercise of the reader's
	up(t, New(bin, c.state, t.Logf))
	if after := pids(c); !slices.Equal(before, after) {
		t.Errorf("processes %v became %v", before, after)
	}
	if view := mustKubectl(t, c.Kubeconfig(), "config", "view"); !strings.Contains(view, "namespace: kube-system") {
		t.Errorf("the reader's namespace is lost:\n%s", view)
	}
	mustKubectl(t, c.Kubeconfig(), "uncordon", "node-2")
}

const crd = `{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
"metadata": {"name": "owners.test.example.com"}, "spec": {"group": "test.example.com", "scope": "Namespaced",
"names": {"kind": "Owner", "plural": "owners", "singular": "owner"}, "versions": [{"name": "v1", "served": true,
"storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]}}`

func crdIsKnown(t *testing.T, c *Cluster) {
	dir := t.TempDir()
	path := filepath.Join(dir, "crd.json")
	if err := os.WriteFile(path, []byte(crd), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := c.Up(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	apply := func(object string) {
		t.Helper()
		file := filepath.Join(dir, "object.json")
		if err := os.WriteFile(file, []byte(object), 0o600); err != nil {
			t.Fatal(err)
		}
		mustKubectl(t, c.Kubeconfig(), "apply", "-n", "default", "-f", file)
	}
	apply(`{"apiVersion": "test.example.com/v1", "kind": "Owner", "metadata": {"name": "one"}}`)
	uid := mustKubectl(t, c.Kubeconfig(), "get", "-n", "default", "owner", "one", "-o", "jsonpath={.metadata.uid}")
	apply(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "owned", "ownerReferences": [
		{"apiVersion": "test.example.com/v1", "kind": "Owner", "name": "one", "uid": "` + uid + `"}]}}`)
	mustKubectl(t, c.Kubeconfig(), "delete", "-n", "default", "owner", "one")
	start := time.Now()
	eventually(t, "the garbage is collected", func() bool {
		_, there := kubectl(t, c.Kubeconfig(), "get", "-n", "default", "configmap", "owned")
		return !there
	})
	if took := time.Since(start); took > 25*time.Second { // by itself it looks for new kinds every 30 s
		t.Errorf("the garbage collector took %v", took)
	}
	before := pids(c)
	if err := c.Up(t.Context(), path); err != nil || !slices.Equal(before, pids(c)) {
		t.Errorf("a CRD that is there already: %v, processes %v became %v", err, before, pids(c))
	}
}

// largeCRD installs a CRD that `kubectl apply` refuses, because it cannot keep a copy in an annotation.
func largeCRD(t *testing.T, c *Cluster) {
	path := filepath.Join(t.TempDir(), "large.json")
	large := strings.NewReplacer("owners", "large", "Owner", "Large", "owner", "large",
		`{"type": "object"}`, `{"type": "object", "description": "`+strings.Repeat("x", 300<<10)+`"}`).Replace(crd)
	if err := os.WriteFile(path, []byte(large), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := c.Up(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	before := pids(c)
	if err := c.Up(t.Context(), path); err != nil || !slices.Equal(before, pids(c)) {
		t.Errorf("a large CRD that is there already: %v, processes %v became %v", err, before, pids(c))
	}
}

// upWaits checks that a command waits for another command, reports it, and ends when it is interrupted.
func upWaits(t *testing.T, c *Cluster) {
	release, err := c.lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	ctx, cancel := context.WithCancel(t.Context())
	said := ""
	second := New(bin, c.state, func(format string, args ...any) {
		said = fmt.Sprintf(format, args...)
		cancel()
	})
	if err := second.Up(ctx); !errors.Is(err, context.Canceled) || !strings.Contains(said, fmt.Sprint(os.Getpid())) {
		t.Errorf("it said %q and ended with %v", said, err)
	}
}

func TestErrorsNameTheThingAndTheFix(t *testing.T) {
	c := newCluster(t)
	var out strings.Builder
	if err := c.Status(t.Context(), &out); !errors.Is(err, ErrNoCluster) {
		t.Errorf("status without a cluster: %v", err)
	}
	if _, err := c.AddUser(t.Context(), "jo"); !errors.Is(err, ErrNoCluster) {
		t.Errorf("a user without a cluster: %v", err)
	}
	if err := c.Down(t.Context()); err != nil {
		t.Errorf("down without a cluster: %v", err)
	}
	if left := files(filepath.Dir(c.state)); len(left) > 0 {
		t.Errorf("asking made %q", left)
	}
	empty := New(t.TempDir(), c.state, t.Logf)
	empty.Fixes.Programs, c.Fixes.Damaged = "compile the programs", "repair the cluster"
	if err := empty.Up(t.Context()); err == nil || !strings.Contains(err.Error(), empty.Fixes.Programs) {
		t.Errorf("up without programs: %v", err)
	}
	_, err := Hold(t.Context(), t.TempDir(), nil, nil) // as examine does, whose user has no workshop
	if err == nil || strings.Contains(err.Error(), "workshop tools") || !strings.Contains(err.Error(), "KUBEBUILDER_ASSETS") {
		t.Errorf("a held cluster without programs: %v", err)
	}
	if err := os.WriteFile(c.portsFile(), []byte(`{"api`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := c.Status(t.Context(), &out); err == nil || !strings.Contains(err.Error(), c.Fixes.Damaged) {
		t.Errorf("status of a damaged cluster: %v", err)
	}
	colon := New(bin, filepath.Join(t.TempDir(), "a:b"), t.Logf)
	if err := colon.Up(t.Context()); err == nil || !strings.Contains(err.Error(), "move the checkout") {
		t.Errorf("up in a path with a colon: %v", err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	inFile := New(bin, filepath.Join(file, "state"), t.Logf)
	if err := inFile.Up(t.Context()); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("up in a file: %v", err)
	}
}
