package controller

import (
	"bufio"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	corev1 "k8s.io/api/core/v1"

	cachev1alpha1 "github.com/example/memcached-operator/api/v1alpha1"
)

func TestWhatIsNotSaid(t *testing.T) {
	m := &cachev1alpha1.Memcached{} // like an object that was stored before the CRD had defaults
	m.Name = "old"
	pods := desiredDeployment(m, DefaultConfig, defaultImage)
	if *pods.Spec.Replicas != 1 || *desiredService(m).Spec.Ports[0].Port != 11211 {
		t.Errorf("%d pods behind port %d", *pods.Spec.Replicas, *desiredService(m).Spec.Ports[0].Port)
	}
	for name, test := range map[string]struct {
		ref  *cachev1alpha1.ConfigReference
		want string
	}{"no ConfigMap": {nil, ""}, "no name": {&cachev1alpha1.ConfigReference{}, "old"},
		"a name": {&cachev1alpha1.ConfigReference{Name: "x"}, "x"}} {
		m.Spec.ConfigRef = test.ref
		if got := configName(m); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

func TestThePodMeetsTheRestrictedStandard(t *testing.T) {
	for name, port := range map[string]int32{
		"a usual port": 11211, "the last that needs rights": 1023, "the first that needs none": 1024} {
		t.Run(name, func(t *testing.T) {
			m := sample(t)
			m.Spec.ContainerPort = port
			pod := desiredPod(m, DefaultConfig, defaultImage)
			c := pod.SecurityContext
			if !*c.RunAsNonRoot || *c.RunAsUser != 11211 || *c.RunAsGroup != 11211 ||
				*c.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
				t.Errorf("the pod's security context is %+v", c)
			}
			if got := len(c.Sysctls) == 1; got != (port < 1024) {
				t.Errorf("port %d, sysctls %+v", port, c.Sysctls)
			}
			if *pod.AutomountServiceAccountToken {
				t.Error("the pod gets a token that it has no use for")
			}
			s := pod.Containers[0].SecurityContext
			if *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem ||
				!slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) {
				t.Errorf("the container's security context is %+v", s)
			}
		})
	}
}

func TestTheMemcachedItselfIsNotChanged(t *testing.T) {
	m := sample(t)
	before := m.DeepCopy()
	desired(m, DefaultConfig, defaultImage)
	if diff := cmp.Diff(before, m); diff != "" {
		t.Error(diff)
	}
}

// listener answers each line with a text, and closes the connection at "quit".
func listener(t *testing.T, text string) (port string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				for lines := bufio.NewScanner(conn); lines.Scan() && lines.Text() != "quit"; {
					_, _ = io.WriteString(conn, text) // a probe that has gone gets no answer
				}
			}()
		}
	}()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

// TestTheProbesAskInTheProtocol runs the probes' script with the tools of Debian images and of Alpine images.
func TestTheProbesAskInTheProtocol(t *testing.T) {
	command := probe(sample(t), isReady).Exec.Command
	if want := []string{"sh", "-c", answers, "answers", "11211", isReady}; !slices.Equal(command, want) {
		t.Errorf("the command is %q", command)
	}
	closed := listener(t, "")
	for tools, names := range map[string][]string{"bash": {"sh", "bash", "cat", "grep"}, "nc": {"sh", "nc", "grep"}} {
		t.Run(tools, func(t *testing.T) {
			folder := t.TempDir()
			for _, name := range names {
				path, err := exec.LookPath(name)
				if err != nil {
					t.Skip("this machine has no ", name)
				}
				if err := os.Symlink(path, filepath.Join(folder, name)); err != nil {
					t.Fatal(err)
				}
			}
			for name, test := range map[string]struct {
				port         string
				ready, alive bool
			}{
				"memcached answers":       {listener(t, "VERSION 1.6.39\r\n"), true, true},
				"something else answers":  {listener(t, "HTTP/1.1 400 Bad Request\r\n"), false, false},
				"memcached is full":       {listener(t, "ERROR Too many open connections\r\n"), false, true},
				"it closes without words": {closed, false, false},
				"no listener":             {"1", false, false},
			} {
				for answer, want := range map[string]bool{isReady: test.ready, isAlive: test.alive} {
					cmd := exec.CommandContext(t.Context(), filepath.Join(folder, "sh"), append(command[1:4:4], test.port, answer)...)
					cmd.Env = []string{"PATH=" + folder}
					if out, err := cmd.CombinedOutput(); (err == nil) != want {
						t.Errorf("%s, asked for %s: %v\n%s", name, answer, err, strings.TrimSpace(string(out)))
					}
				}
			}
		})
	}
}
