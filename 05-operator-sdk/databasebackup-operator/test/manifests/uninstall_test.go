package manifests

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	databasesv1 "github.com/example/databasebackup-operator/api/v1"
	"github.com/example/databasebackup-operator/internal/testenv"
)

// uninstalling runs a target on an API server, and returns its output and whether it succeeded.
func uninstalling(t *testing.T, kubeconfig string, args ...string) (string, bool) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "make", append([]string{"-s", "-C", filepath.Join("..", "..")}, args...)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "PATH="+filepath.Dir(kubectl)+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	return string(out), err == nil
}

// Both targets refuse to delete a CRD while objects of its kind exist. They would be deleted with the CRD:
// DatabaseBackups, and their files where the policy is Delete.
func TestUninstallRefusesWhileThereAreDatabaseBackups(t *testing.T) {
	cfg := testenv.NewAPIServer(t, filepath.Join("..", "..", "config", "crd", "bases"))
	kubeconfig := testenv.WriteKubeconfig(t, cfg, "")
	scheme := runtime.NewScheme()
	if err := databasesv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	orders := &databasesv1.DatabaseBackup{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "orders"},
		Spec: databasesv1.DatabaseBackupSpec{DatabaseName: "orders", Schedule: "@daily", BackupPath: "/a",
			DeletionPolicy: databasesv1.DeleteFiles}}
	monday := &databasesv1.DatabaseRestore{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "monday"},
		Spec: databasesv1.DatabaseRestoreSpec{DatabaseBackupName: "orders", BackupName: "orders-7"}}
	for _, object := range []client.Object{orders, monday} {
		if err := c.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	for _, target := range []string{"uninstall", "undeploy"} {
		out, ok := uninstalling(t, kubeconfig, target)
		for _, want := range []string{"DatabaseBackup default/orders, and its backups: deletionPolicy is Delete",
			"DatabaseRestore default/monday\n", "make " + target + " FORCE=1"} {
			if ok || !strings.Contains(out, want) {
				t.Errorf("%s succeeded: %v, and prints no %q: %s", target, ok, want, out)
			}
		}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(orders), orders); err != nil {
			t.Fatalf("%s deletes it: %v", target, err)
		}
	}
	if out, ok := uninstalling(t, kubeconfig, "uninstall", "FORCE=1"); !ok {
		t.Error("with FORCE=1:", out)
	}
	left := &databasesv1.DatabaseBackupList{}
	for deadline := time.Now().Add(20 * time.Second); c.List(t.Context(),
		left) == nil; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the CRD is still there")
		}
	}
	if out, ok := uninstalling(t, kubeconfig, "uninstall", "ignore-not-found=true"); !ok {
		t.Error("when all is gone:", out)
	}
	if _, ok := uninstalling(t, filepath.Join(t.TempDir(), "none"), "uninstall"); ok {
		t.Error("it succeeds without a cluster")
	}
}
