package programs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestComplete examines folders that cannot become complete. Each error names the fix.
func TestComplete(t *testing.T) {
	for name, test := range map[string]struct{ apiServer, want string }{
		"no API server":       {"", "has no kube-apiserver"},
		"an older API server": {"Kubernetes v1.30.2", "put kube-controller-manager, kube-scheduler and kwok beside"},
		"no Go":               {"Kubernetes " + version(), "Go, which compiles them, is not installed"},
	} {
		t.Run(name, func(t *testing.T) {
			assets := t.TempDir()
			for _, program := range []string{"etcd", "kube-apiserver", "kubectl"} {
				script := "#!/bin/sh\necho " + test.apiServer + "\n"
				if program == "kube-apiserver" && test.apiServer == "" {
					continue
				}
				if err := os.WriteFile(filepath.Join(assets, program), []byte(script), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			t.Setenv("KUBEBUILDER_ASSETS", assets)
			t.Setenv("XDG_CACHE_HOME", t.TempDir())
			t.Setenv("HOME", t.TempDir())
			t.Setenv("PATH", t.TempDir()) // without Go
			_, _, err := Complete(t.Context(), t.Logf)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
}
