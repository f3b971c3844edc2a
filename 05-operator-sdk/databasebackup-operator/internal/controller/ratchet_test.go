package controller

import (
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	databasesv1 "github.com/example/databasebackup-operator/api/v1"
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
func olderCRDs(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(shippedCRDs, "*.yaml"))
	must(t, err)
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
// can be removed, so their namespace can be deleted.
func TestAnObjectThatANewerRuleRefusesCanGo(t *testing.T) {
	useLocal(t, olderCRDs(t))
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

	_, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{Paths: []string{shippedCRDs}})
	b.must(err)
	g := gomega.NewWithT(t)
	g.SetDefaultEventuallyTimeout(time.Minute)
	g.Eventually(func() bool {
		backup := b.Create(t.Context(), object("DatabaseBackup", b.namespace, "a.b", with(nil)), client.DryRunAll)
		restore := b.Create(t.Context(), object("DatabaseRestore", b.namespace, "a.b", restoring("backoffLimit", int64(1))),
			client.DryRunAll)
		return apierrors.IsInvalid(backup) && apierrors.IsInvalid(restore)
	}).Should(gomega.BeTrue(), "the rules count")

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
	}
	restore := ctrl.Request{NamespacedName: client.ObjectKey{Namespace: b.namespace, Name: "mon.day"}}
	if _, err := b.restorer.Reconcile(t.Context(), restore); err != nil {
		t.Error("a restore:", err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: b.namespace}}
	b.must(b.WithWatch.Delete(t.Context(), namespace))
	for _, x := range all.Items {
		key := client.ObjectKeyFromObject(&x)
		g.Eventually(func() bool { return b.Get(t.Context(), key, &x) == nil && x.DeletionTimestamp != nil }).Should(
			gomega.BeTrue(), "%s is being deleted", x.Name)
		if _, err := b.operator.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err != nil {
			t.Errorf("%s is deleted: %v", x.Name, err)
		}
	}
	g.Eventually(func() bool {
		return apierrors.IsNotFound(b.Get(t.Context(), client.ObjectKeyFromObject(namespace), namespace))
	}).Should(gomega.BeTrue(), "the namespace is gone")
}
