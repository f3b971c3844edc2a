package main

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestMain makes the test binary the program itself when the tests below start it again.
func TestMain(m *testing.M) {
	if os.Getenv("LOOKAROUND_TEST_MAIN") == "" {
		os.Exit(m.Run())
	}
	main()
}

func TestWithoutAClusterItSaysWhyInOneLine(t *testing.T) {
	home := t.TempDir()
	empty := filepath.Join(home, "empty")
	if err := os.WriteFile(empty, []byte("apiVersion: v1\nkind: Config\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		env  []string
		args []string
		want string
	}{
		"no kubeconfig anywhere": {
			want: "error: KUBECONFIG is not set and " + filepath.Join(home, ".kube", "config") +
				" names no cluster; fix: `make up`",
		},
		"a flag that names no file": {
			args: []string{"--kubeconfig", filepath.Join(home, "none")},
			want: "error: kubeconfig " + filepath.Join(home, "none") + " cannot be used: ",
		},
		"the flag comes before KUBECONFIG": {
			env: []string{"KUBECONFIG=" + writeKubeconfig(t, "https://"+unused(t))}, args: []string{"--kubeconfig", empty},
			want: "error: kubeconfig " + empty + " names no cluster",
		},
		"a KUBECONFIG that names no cluster": {
			env:  []string{"KUBECONFIG=" + empty},
			want: "error: KUBECONFIG=" + empty + " names no cluster",
		},
		"a server that does not run": {
			env:  []string{"KUBECONFIG=" + writeKubeconfig(t, "https://"+unused(t))},
			want: "error: read the version of https://127.0.0.1:",
		},
		"a pod without a token does not fall back to the home directory": {
			env:  []string{"KUBERNETES_SERVICE_HOST=127.0.0.1", "KUBERNETES_SERVICE_PORT=1"},
			want: "error: the service account of this pod cannot be used: ",
		},
		"an argument": {
			args: []string{"nodes"},
			want: `error: unexpected argument "nodes"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command(os.Args[0], test.args...)
			cmd.Env = append(test.env, "LOOKAROUND_TEST_MAIN=1", "HOME="+home)
			out, err := cmd.CombinedOutput()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != 1 {
				t.Errorf("got %v, want exit code 1", err)
			}
			if text := string(out); !strings.HasPrefix(text, test.want) || strings.Count(text, "\n") != 1 {
				t.Errorf("printed %q\nwant one line that starts with %q", text, test.want)
			}
		})
	}
}

// writeKubeconfig writes a kubeconfig for the given server and returns its path.
func writeKubeconfig(t *testing.T, server string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	text := "{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}], " +
		"users: [{name: u}], clusters: [{name: c, cluster: {server: '" + server + "'}}]}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// unused returns a loopback address that nothing listens on.
func unused(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
