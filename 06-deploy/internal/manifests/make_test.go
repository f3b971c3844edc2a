package manifests_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"example.com/operator-workshop/06-deploy/internal/kustomize"
	"example.com/operator-workshop/06-deploy/internal/manifests"
	"example.com/operator-workshop/06-deploy/internal/testenv"
)

// run runs a target of the Makefile in a copy of this folder, with the kubectl of the test servers.
func run(t *testing.T, args ...string) (folder, said string, err error) {
	t.Helper()
	assets, err := testenv.Assets()
	testenv.Must(t, err)
	folder = filepath.Join(t.TempDir(), "copy")
	testenv.Must(t, os.CopyFS(filepath.Join(folder, "config"), os.DirFS(config)))
	for _, name := range []string{
		"Makefile", "observe/kustomization.yaml", "observe/alerts.yaml", "observe/dashboard.json"} {
		data, err := os.ReadFile(filepath.Join("..", "..", name))
		testenv.Must(t, err)
		testenv.Must(t, os.MkdirAll(filepath.Dir(filepath.Join(folder, name)), 0o755))
		testenv.Must(t, os.WriteFile(filepath.Join(folder, name), data, 0o600))
	}
	cmd := exec.CommandContext(t.Context(), "make", append([]string{"--no-print-directory"}, args...)...)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "PATH="+assets+string(os.PathListSeparator)+os.Getenv("PATH"), "MAKEFLAGS=")
	out, err := cmd.CombinedOutput()
	return folder, string(out), err
}

// One file has the CRD and all objects that kustomize builds from a folder, with the requested image.
func TestOneFileInstallsAllOfIt(t *testing.T) {
	const asked = "registry:5000/team/web@sha256:0123456789012345678901234567890123456789012345678901234567890123"
	folder, said, err := run(t, "install.yaml", "IMPL=04", "CONFIG=production", "IMG="+asked)
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	file, err := os.Open(filepath.Join(folder, "dist", "install.yaml"))
	testenv.Must(t, err)
	defer file.Close()
	got, err := manifests.Read(file)
	testenv.Must(t, err)
	crd, errCRD := kustomize.Build(filepath.Join(config, "crd"))
	want, err := kustomize.Build(filepath.Join(config, "04/production"))
	if err != nil || errCRD != nil {
		t.Fatal(err, errCRD)
	}
	for _, object := range want {
		if object.GetKind() != "Deployment" {
			continue
		}
		containers, _, err := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
		testenv.Must(t, err)
		containers[0].(map[string]any)["image"] = asked
		if err := unstructured.SetNestedSlice(object.Object, containers, "spec", "template", "spec",
			"containers"); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(slices.Concat(crd, want), got); diff != "" {
		t.Errorf("(-kustomize's library +file):\n%s", diff)
	}
}

func TestAWayThatIsNoneIsNamed(t *testing.T) {
	for args, want := range map[string]string{
		"CONFIG=debug":            "there is no config/04/debug: CONFIG is one of default",
		"IMPL=03 CONFIG=webhooks": "there is no config/03/webhooks: CONFIG is one of default",
		"IMPL=07":                 "there is no config/07/default: ",
	} {
		if _, said, err := run(t, append([]string{"install.yaml"}, strings.Fields(args)...)...); err == nil ||
			!strings.Contains(said, want) {
			t.Errorf("%s: %v, got %q, want %q", args, err, said, want)
		}
	}
}
