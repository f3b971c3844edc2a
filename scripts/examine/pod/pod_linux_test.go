package pod

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	identity "example.com/operator-workshop/scripts/examine/process"
)

// programs are what this test program does in a pod, by the variable PROGRAM.
var programs = map[string]func() error{
	"look":   look,
	"listen": listen,
	"ask":    ask,
	"exit":   func() error { os.Exit(7); return nil },
	"crash":  func() error { return syscall.Kill(os.Getpid(), syscall.SIGKILL) },
	"spawn":  spawn,
	"check":  func() error { fmt.Println("check:", Check()); return nil },
	"wait":   wait,
}

func TestMain(m *testing.M) {
	if run, ok := programs[os.Getenv("PROGRAM")]; ok {
		if err := run(); err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// A view is what a program sees.
type view struct {
	Host, User, Caps string
	Env              []string
	Reads            map[string]string // by path, the content, or the names in a folder
	Writes           map[string]bool   // by path
	Processes        int
	Dials            map[string]bool // by address
}

// look prints what the program sees of the paths and addresses in its environment.
func look() error {
	v := view{Env: os.Environ(), Reads: map[string]string{}, Writes: map[string]bool{}, Dials: map[string]bool{}}
	v.Host, _ = os.Hostname()
	v.User = fmt.Sprint(os.Getuid(), os.Getgid())
	status, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(status)) {
		if strings.HasPrefix(line, "CapPrm") || strings.HasPrefix(line, "CapBnd") {
			v.Caps += strings.Fields(line)[1]
		}
	}
	for path := range strings.FieldsSeq(os.Getenv("READ")) {
		if data, err := os.ReadFile(path); err == nil {
			v.Reads[path] = string(data)
		} else if entries, err := os.ReadDir(path); err == nil {
			for _, e := range entries {
				v.Reads[path] += e.Name() + " "
			}
		}
	}
	for path := range strings.FieldsSeq(os.Getenv("WRITE")) {
		file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
		if v.Writes[path] = err == nil; err == nil {
			_ = file.Close()
		}
	}
	v.Processes = len(identity.Numbers())
	for address := range strings.FieldsSeq(os.Getenv("DIAL")) {
		network := "tcp"
		if strings.HasPrefix(address, "@") {
			network = "unix" // an abstract name
		}
		c, err := net.DialTimeout(network, address, time.Second)
		if v.Dials[address] = err == nil; err == nil {
			_ = c.Close()
		}
	}
	return json.NewEncoder(os.Stdout).Encode(v)
}

// listen answers with the host name on port 9443.
func listen() error {
	l, err := net.Listen("tcp", ":9443")
	for err == nil {
		var c net.Conn
		if c, err = l.Accept(); err == nil {
			host, _ := os.Hostname()
			_, _ = fmt.Fprintln(c, host)
			_ = c.Close()
		}
	}
	return err
}

// ask prints the answer of the API server.
func ask() error {
	c, err := net.Dial("tcp", net.JoinHostPort(os.Getenv("KUBERNETES_SERVICE_HOST"), "443"))
	if err == nil {
		_, err = io.Copy(os.Stdout, c)
	}
	return err
}

// spawn starts a process in another session, which starts another one, and waits.
func spawn() error {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{"PROGRAM=wait"}
	if os.Getenv("DEPTH") == "" {
		cmd.Env = []string{"PROGRAM=spawn", "DEPTH=1"}
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if os.Getenv("DEPTH") != "" {
		return cmd.Start() // it becomes an orphan
	}
	if err := cmd.Run(); err != nil {
		return err
	}
	return wait()
}

// wait waits forever. Without cgo the runtime ends a program whose only goroutine is in an empty select.
func wait() error {
	for {
		_ = syscall.Pause()
	}
}

// A running is a program in a pod.
type running struct {
	*Init
	pid     int
	network *Network
	server  net.Listener
	output  *bytes.Buffer
}

var usual = Pod{Name: "operator-5d4b9", Address: netip.MustParseAddr("10.244.0.7"),
	Server: netip.MustParseAddrPort("10.96.0.1:443"), User: 65532}

func start(t *testing.T, p Pod, program string, env ...string) *running {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return startAt(t, self, p, program, env...)
}

// startAt is start for a program with the given path.
func startAt(t *testing.T, path string, p Pod, program string, env ...string) *running {
	t.Helper()
	if err := Check(); err != nil {
		t.Skip("this system allows no pods: ", err)
	}
	n, inner, err := NewNetwork()
	if err != nil {
		t.Fatal(err)
	}
	defer inner.Close()
	env = append(env, "PROGRAM="+program, "KUBERNETES_SERVICE_HOST="+p.Server.Addr().String())
	r := &running{network: n, output: new(bytes.Buffer)}
	if r.Init, err = New(p, Container{Path: path, Args: []string{path}, Env: env, Dir: "/"}, inner); err != nil {
		t.Fatal(err)
	}
	r.Stdout, r.Stderr = r.output, r.output
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Cmd.Process.Kill(); _ = r.Cmd.Wait(); _ = n.Close() })
	if r.pid, err = r.Run(); err != nil {
		t.Fatal(err)
	}
	if r.server, err = n.Listener(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.server.Close() })
	return r
}

// ended waits for the end of the program, and returns its output.
func (r *running) ended(t *testing.T) (End, string) {
	t.Helper()
	end := r.End()
	if err := r.Wait(); err != nil || end == nil {
		t.Fatalf("the first process: %v, %+v\n%s", err, end, r.output)
	}
	return *end, r.output.String()
}

// viewOf is what a program sees in a pod.
func viewOf(t *testing.T, p Pod, env ...string) (v view) {
	t.Helper()
	end, output := start(t, p, "look", env...).ended(t)
	if err := json.Unmarshal([]byte(output), &v); err != nil || end != (End{}) {
		t.Fatalf("%v, %+v\n%s", err, end, output)
	}
	return v
}

func TestAProgramSeesAPodAndNothingOfTheMachine(t *testing.T) {
	t.Setenv("KUBECONFIG", "/root/.kube/config")
	dir := t.TempDir()
	secret, token := filepath.Join(dir, "secret"), filepath.Join(dir, "account", "token")
	if err := errors.Join(os.Mkdir(filepath.Dir(token), 0o700), os.WriteFile(secret, []byte("x"), 0o644),
		os.WriteFile(token, []byte("a token"), 0o600)); err != nil {
		t.Fatal(err)
	}
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	folder, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	const inPod = "/var/run/secrets/kubernetes.io/serviceaccount"
	p := usual
	p.Mounts = []Mount{{Source: filepath.Dir(token), Target: inPod}, {Target: "/cache"}}
	read := []string{secret, dir, home, folder, "/tmp", "/root", "/home", "/", inPod + "/token", "/etc/shadow", "/sys",
		"/proc/1/root", "/proc/1/environ"}
	v := viewOf(t, p, "READ="+strings.Join(read, " "), "WRITE=/file /tmp/file /cache/file "+inPod+"/token /usr/file "+
		"/proc/sys/kernel/hostname /proc/sys/net/ipv4/ip_unprivileged_port_start /proc/self/comm /dev/null")
	if v.Host != p.Name || v.User != "65532 65532" || strings.Trim(v.Caps, "0") != "" || v.Processes != 2 {
		t.Errorf("host %q, user %q, capabilities %s, %d processes", v.Host, v.User, v.Caps, v.Processes)
	}
	if slices.ContainsFunc(v.Env, func(s string) bool { return strings.HasPrefix(s, "KUBECONFIG") }) || len(v.Env) != 4 {
		t.Errorf("environment %q", v.Env)
	}
	if strings.Contains(v.Reads["/"], ".machine") {
		t.Errorf("it sees %s in /", v.Reads["/"])
	}
	delete(v.Reads, "/")
	delete(v.Reads, "/tmp") // the folder of this test program
	if self := strings.TrimSuffix(v.Reads[folder], " "); self != "" {
		t.Errorf("it sees %s in %s", self, folder)
	}
	delete(v.Reads, folder)
	for path := range v.Reads {
		if v.Reads[path] == "" { // a folder above a mount
			delete(v.Reads, path)
		}
	}
	if len(v.Reads) != 1 || v.Reads[inPod+"/token"] != "a token" {
		t.Errorf("it reads %q", v.Reads)
	}
	for path, want := range map[string]bool{"/file": true, "/tmp/file": true, "/cache/file": true, "/dev/null": true} {
		if v.Writes[path] != want {
			t.Errorf("%s: written %v, want %v", path, v.Writes[path], want)
		}
		delete(v.Writes, path)
	}
	for path, done := range v.Writes {
		if done {
			t.Errorf("it wrote to %s", path)
		}
	}
}

func TestAReadOnlyRoot(t *testing.T) {
	p := usual
	p.ReadOnly, p.Mounts = true, []Mount{{Target: "/cache"}}
	v := viewOf(t, p, "WRITE=/file /tmp/file /etc/hosts /cache/file")
	if !v.Writes["/cache/file"] || v.Writes["/file"] || v.Writes["/tmp/file"] || v.Writes["/etc/hosts"] {
		t.Errorf("it wrote %v", v.Writes)
	}
}

// TestAMountDoesNotReachTheMachine has a target that was the place of the machine's folders, and a link to it in a folder
// that a program before has written.
func TestAMountDoesNotReachTheMachine(t *testing.T) {
	machine, source, written := t.TempDir(), filepath.Join(t.TempDir(), "source"), t.TempDir()
	file := filepath.Join(machine, "file")
	if err := errors.Join(os.WriteFile(file, []byte("kept"), 0o600), os.WriteFile(source, []byte("new"), 0o600),
		os.Symlink("/.machine"+machine, filepath.Join(written, "link"))); err != nil {
		t.Fatal(err)
	}
	for _, target := range []string{"/.machine" + file, "/written/link/file"} {
		p := usual
		p.Mounts = []Mount{{Source: written, Target: "/written", Writable: true},
			{Source: source, Target: "/.machine" + machine + "/new"}, {Source: source, Target: target}}
		viewOf(t, p)
		if _, err := os.Stat(filepath.Join(machine, "new")); err == nil {
			t.Error("a mount made a file of the machine")
		}
		if data, err := os.ReadFile(file); err != nil || string(data) != "kept" {
			t.Errorf("%s: the file of the machine has %q, %v", target, data, err)
		}
	}
}

// TestAnEmptyFolderAboveTheProgram has a mount above the executable file, which is below /tmp.
func TestAnEmptyFolderAboveTheProgram(t *testing.T) {
	p := usual
	p.ReadOnly, p.Mounts = true, []Mount{{Target: "/tmp"}}
	if v := viewOf(t, p, "WRITE=/tmp/file"); !v.Writes["/tmp/file"] {
		t.Errorf("it wrote %v", v.Writes)
	}
}

// TestAFolderAboveTheProgram keeps what the pod before wrote, such as the place of the program.
func TestAFolderAboveTheProgram(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := usual
	p.Mounts = []Mount{{Source: t.TempDir(), Target: filepath.Dir(self), Writable: true}}
	for range 2 {
		viewOf(t, p)
	}
}

// TestLinksOnTheMachine has a program and a mount below a folder that is a link.
func TestLinksOnTheMachine(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	link, source := filepath.Join(t.TempDir(), "link"), t.TempDir()
	data := filepath.Join(filepath.Dir(link), "data")
	if err := errors.Join(os.Symlink(filepath.Dir(self), link), os.Symlink(source, data),
		os.WriteFile(filepath.Join(source, "file"), []byte("x"), 0o600)); err != nil {
		t.Fatal(err)
	}
	p := usual
	p.Mounts = []Mount{{Source: data, Target: "/data"}}
	end, output := startAt(t, filepath.Join(link, filepath.Base(self)), p, "look", "READ=/data").ended(t)
	if end != (End{}) || !strings.Contains(output, `{"/data":"file "}`) {
		t.Errorf("%+v, %s", end, output)
	}
}

// TestAProgramThatIsALink has links of the system to a program outside it. Only root can make such a link for the whole
// test.
func TestAProgramThatIsALink(t *testing.T) {
	dir := t.TempDir()
	first, second := filepath.Join(dir, "first"), filepath.Join(dir, "second")
	if err := errors.Join(os.Symlink("second", first), os.Symlink("/nowhere/program", second)); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{first: "/nowhere/program", "/nowhere/other": "/nowhere/other"} {
		if got := shownAt(path); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	link := "/usr/local/bin/" + filepath.Base(dir) + "-" + filepath.Base(self)
	if err := os.Symlink(self, link); err != nil {
		t.Skip("no link can be made below /usr: ", err)
	}
	defer os.Remove(link)
	end, output := startAt(t, link, usual, "look", "READ="+link).ended(t)
	if end != (End{}) || !strings.Contains(output, link) {
		t.Errorf("%+v, %s", end, output)
	}
}

func TestNoAddressOfTheMachineIsReached(t *testing.T) {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	abstract, err := net.Listen("unix", fmt.Sprintf("@lab-pod-%d", os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	defer abstract.Close()
	dial := []string{abstract.Addr().String()}
	for _, a := range addresses {
		prefix := netip.MustParsePrefix(a.String())
		dial = append(dial, net.JoinHostPort(prefix.Addr().String(), strconv.Itoa(l.Addr().(*net.TCPAddr).Port)))
	}
	v := viewOf(t, usual, "DIAL="+strings.Join(append(dial, usual.Server.String()), " "))
	for _, address := range dial {
		if reached, tried := v.Dials[address]; reached || !tried {
			t.Errorf("%s: reached %v, tried %v", address, reached, tried)
		}
	}
	if !v.Dials[usual.Server.String()] {
		t.Error("it does not reach the API server")
	}
}

func TestTheAPIServerAnswers(t *testing.T) {
	r := start(t, usual, "ask")
	c, err := r.server.Accept()
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(c, "hello")
	_ = c.Close()
	if end, output := r.ended(t); end != (End{}) || output != "hello" {
		t.Errorf("%+v, %q", end, output)
	}
}

func TestTwoPodsListenOnOnePort(t *testing.T) {
	for _, name := range []string{"one", "two"} {
		p := usual
		p.Name = name
		r := start(t, p, "listen")
		defer func() { _ = r.Cmd.Process.Kill() }()
		var c net.Conn
		awaited(t, func() (err error) { c, err = r.network.Dial(9443); return err })
		if line, err := bufio.NewReader(c).ReadString('\n'); err != nil || line != name+"\n" {
			t.Errorf("%q, %v", line, err)
		}
		if _, err := r.network.Dial(9444); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("a port on which nothing listens: %v", err)
		}
	}
}

// TestACommandInAPod runs a command beside the program, as an exec probe does.
func TestACommandInAPod(t *testing.T) {
	r := start(t, usual, "wait", "PATH=/usr/bin:/bin", "GREETING=hello")
	for _, test := range []struct {
		command []string
		say     string
	}{
		{[]string{"true"}, ""},
		{[]string{"sh", "-c", "grep -q hello /proc/self/environ && test `hostname` = " + usual.Name}, ""},
		{[]string{"sh", "-c", "echo not ready; exit 3"}, "ended with code 3: not ready"},
		{[]string{"sh", "-c", "grep -q 'CapPrm:.0000000000000000' /proc/self/status"}, ""},
		{[]string{"sh", "-c", "sleep 100 & echo started"}, ""}, // a child has the output open
		{[]string{"no-such-command"}, "no such file"},
		{[]string{"/no/such/command"}, "no such file"},
	} {
		err := r.network.Exec(test.command)
		if (err == nil) != (test.say == "") || err != nil && !strings.Contains(err.Error(), test.say) {
			t.Errorf("%q: %v, want %q", test.command, err, test.say)
		}
	}
}

func TestTheEndOfAProgram(t *testing.T) {
	for program, want := range map[string]End{"exit": {Code: 7}, "crash": {Code: -1, Signal: syscall.SIGKILL}} {
		r := start(t, usual, program)
		if end, output := r.ended(t); end != want {
			t.Errorf("%s: %+v, want %+v\n%s", program, end, want, output)
		}
	}
}

func TestAllProcessesEndWithTheFirst(t *testing.T) {
	r := start(t, usual, "spawn")
	namespace, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", r.pid))
	if err != nil {
		t.Fatal(err)
	}
	members := func() (n int) {
		for _, pid := range identity.Numbers() {
			if ns, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", pid)); err == nil && ns == namespace {
				n++
			}
		}
		return n
	}
	count := func(want int) func() error {
		return func() error {
			if n := members(); n != want {
				return fmt.Errorf("%d processes, want %d", n, want)
			}
			return nil
		}
	}
	awaited(t, count(3)) // the first process, the program, and an orphan in a separate session
	if err := r.Cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = r.Wait() // the end has the result
	awaited(t, count(0))
	if end := r.End(); end != nil {
		t.Errorf("the killed program has an end: %+v", end)
	}
}

func TestASystemThatForbidsNamespaces(t *testing.T) {
	if _, output := start(t, usual, "check").ended(t); !strings.Contains(output, "check: start a pod: ") {
		t.Error("a pod in a pod:", output)
	}
}

func TestAMountThatDoesNotExist(t *testing.T) {
	if err := Check(); err != nil {
		t.Skip(err)
	}
	n, inner, err := NewNetwork()
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	defer inner.Close()
	p := usual
	p.Mounts = []Mount{{Source: "/no/such/file", Target: "/file"}}
	r, err := New(p, Container{Path: "/bin/sh", Args: []string{"sh"}, Dir: "/"}, inner)
	if err == nil {
		err = r.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Wait() }()
	if _, err := r.Run(); err == nil || !strings.Contains(err.Error(), "show /no/such/file: stat /no/such/file: ") {
		t.Errorf("%v", err)
	}
}

// awaited waits until try succeeds.
func awaited(t *testing.T, try func() error) {
	t.Helper()
	err := try()
	for begin := time.Now(); err != nil && time.Since(begin) < 20*time.Second; err = try() {
		time.Sleep(5 * time.Millisecond)
	}
	if err != nil {
		t.Fatal(err)
	}
}
