package controller

import (
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/onsi/gomega"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	databasesv1 "github.com/example/databasebackup-operator/api/v1"
	"github.com/example/databasebackup-operator/internal/testenv"
)

// withoutRules removes the rules of a schema, as if they came later.
func withoutRules(x any) {
	switch x := x.(type) {
	case tree:
		maps.DeleteFunc(x, func(key string, _ any) bool { return key == "x-kubernetes-validations" })
		for _, child := range x {
			withoutRules(child)
		}
	case []any:
		for _, child := range x {
			withoutRules(child)
		}
	}
}

// olderCRDs writes the CRDs without their rules into a folder.
func olderCRDs(t *testing.T, crds string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(crds, "*.yaml"))
	if err != nil || len(files) != 2 {
		t.Fatal(files, err)
	}
	folder := t.TempDir()
	for _, file := range files {
		data, err := os.ReadFile(file)
		must(t, err)
		crd := tree{}
		must(t, yaml.Unmarshal(data, &crd))
		withoutRules(crd)
		if data, err = yaml.Marshal(crd); err == nil {
			err = os.WriteFile(filepath.Join(folder, filepath.Base(file)), data, 0o600)
		}
		must(t, err)
	}
	return folder
}

// Objects with our finalizer are older than the rules that refuse them. Their status can be written and their finalizer
// can be removed, so they do not block their namespace.
func TestAnObjectThatANewerRuleRefusesCanGo(t *testing.T) {
	crds := filepath.Join("..", "..", "config", "crd", "bases")
	shared := config
	t.Cleanup(func() { config = shared })
	config = testenv.NewAPIServer(t, olderCRDs(t, crds))
	b := &fixture{t: t, crashAt: -1, events: events.NewFakeRecorder(1000)}
	b.WithWatch, b.namespace = newClient(t)
	b.clock = clocktesting.NewFakePassiveClock(time.Now())
	b.operator = b.replica()
	b.restorer = &DatabaseRestoreReconciler{Base: b.operator.Base}
	for name, spec := range map[string]tree{
		"orders.main": {}, "six": {"schedule": "0 0 3 * * *"}, "relative": {"backupPath": "a"},
		"both": {"destination": tree{"persistentVolumeClaim": tree{"claimName": "gone"}, "rest": restAt("no")}},
	} {
		maps.Copy(spec, tree{"deletionPolicy": "Delete", "targetRef": tree{"name": "orders"}})
		u := object("DatabaseBackup", b.namespace, name, with(spec))
		u.SetFinalizers([]string{databasesv1.FilesFinalizer})
		b.must(b.Create(t.Context(), u))
	}
	b.must(b.Create(t.Context(), object("DatabaseRestore", b.namespace, "mon.day", restoring("databaseName", "postgres"))))

	_, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{Paths: []string{crds}})
	b.must(err)
	gomega.NewWithT(t).Eventually(func() bool {
		backup := b.Create(t.Context(), object("DatabaseBackup", b.namespace, "a.b", with(nil)), client.DryRunAll)
		restore := b.Create(t.Context(), object("DatabaseRestore", b.namespace, "a.b", restoring("backoffLimit", int64(1))),
			client.DryRunAll)
		return apierrors.IsInvalid(backup) && apierrors.IsInvalid(restore)
	}, "30s", "50ms").Should(gomega.BeTrue(), "the rules count")

	all := &databasesv1.DatabaseBackupList{}
	b.must(b.List(t.Context(), all, client.InNamespace(b.namespace)))
	for _, x := range all.Items {
		request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&x)}
		if _, err := b.operator.Reconcile(t.Context(), request); err != nil {
			t.Errorf("%s lives: %v", x.Name, err)
		}
		b.must(b.Get(t.Context(), request.NamespacedName, &x))
		if len(x.Status.Conditions) == 0 {
			t.Errorf("%s has no status", x.Name)
		}
		b.must(b.Delete(t.Context(), &x))
		if _, err := b.operator.Reconcile(t.Context(), request); err != nil {
			t.Errorf("%s is deleted: %v", x.Name, err)
		}
		if err := b.Get(t.Context(), request.NamespacedName, &x); !apierrors.IsNotFound(err) {
			t.Errorf("%s is still there: %v", x.Name, err)
		}
	}
	key := client.ObjectKey{Namespace: b.namespace, Name: "mon.day"}
	if _, err := b.restorer.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err != nil {
		t.Error("a restore:", err)
	}
}
