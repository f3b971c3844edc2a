package main

import (
	"errors"
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

func TestWithoutAClusterItSaysWhy(t *testing.T) {
	home := t.TempDir()
	empty := filepath.Join(home, "empty")
	if err := os.WriteFile(empty, []byte("apiVersion: v1\nkind: Config\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	closed := filepath.Join(home, "closed")
	if err := os.WriteFile(closed, []byte("{apiVersion: v1, kind: Config, current-context: c, "+
		"contexts: [{name: c, context: {cluster: c}}], clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]}"),
		0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		env, arg, want string
	}{
		"no kubeconfig anywhere":     {"", "", "no cluster is named in " + filepath.Join(home, ".kube", "config")},
		"a flag that names no file":  {"", "--kubeconfig=/none", "stat /none: no such file"},
		"the flag comes first":       {closed, "--kubeconfig=" + empty, "no cluster is named in " + empty},
		"a server that does not run": {closed, "", "read the version of https://127.0.0.1:1: "},
		"an argument":                {"", "nodes", `unexpected argument "nodes"`},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command(os.Args[0], strings.Fields(test.arg)...)
			cmd.Env = []string{"LOOKAROUND_TEST_MAIN=1", "HOME=" + home, "KUBECONFIG=" + test.env}
			out, err := cmd.CombinedOutput()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != 1 {
				t.Errorf("got %v, want exit code 1", err)
			}
			if !strings.HasPrefix(string(out), "error: ") || !strings.Contains(string(out), test.want) {
				t.Errorf("printed %q, want %q", out, test.want)
			}
		})
	}
}
