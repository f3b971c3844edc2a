package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	databasesv1 "github.com/example/databasebackup-operator/api/v1"
)

// served waits until the named DatabaseBackup has its Job, and returns the Job.
func (f *fixture) served(name string) *batchv1.Job {
	f.t.Helper()
	jobs := &batchv1.JobList{}
	f.Eventually(func() ([]batchv1.Job, error) {
		err := f.List(f.t.Context(), jobs, client.InNamespace(f.namespace),
			client.MatchingLabels{"app.kubernetes.io/instance": name})
		return jobs.Items, err
	}).Should(gomega.HaveLen(1))
	return &jobs.Items[0]
}

// target creates a server that is ready.
func (f *fixture) target(name string) {
	f.t.Helper()
	meta, l := metav1.ObjectMeta{Namespace: f.namespace, Name: name}, map[string]string{"app": name}
	set := &appsv1.StatefulSet{ObjectMeta: meta,
		Spec: appsv1.StatefulSetSpec{ServiceName: name, Selector: &metav1.LabelSelector{MatchLabels: l},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: l},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "db", Image: "postgres:17"}}}}}}
	f.create(set)
	set.Status.Replicas, set.Status.ReadyReplicas = 1, 1
	f.Expect(f.Status().Update(f.t.Context(), set)).To(gomega.Succeed())
	f.create(&corev1.Service{ObjectMeta: meta,
		Spec: corev1.ServiceSpec{Selector: l, Ports: []corev1.ServicePort{{Port: 5432}}}})
}

// ask requests an immediate backup of a separate server.
func (f *fixture) ask(name string) {
	f.t.Helper()
	f.target(name)
	key := &databasesv1.KeyReference{Name: "credentials", Key: "k"}
	f.create(&databasesv1.DatabaseBackup{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: name},
		Spec: databasesv1.DatabaseBackupSpec{DatabaseName: name, Schedule: "@yearly", BackupPath: "/backups", Immediate: true,
			TargetRef:   &databasesv1.TargetReference{Name: name},
			Auth:        &databasesv1.Auth{UsernameSecretRef: key, PasswordSecretRef: key},
			Destination: &databasesv1.Destination{PersistentVolumeClaim: &databasesv1.ClaimReference{ClaimName: "backups"}}}})
}

// The memcached operator has the same package program: its tests prove the other reasons not to start.
func TestItSaysInOneLineWhyItCannotStart(t *testing.T) { // runs first: one CRD of two is installed
	if _, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{Paths: []string{
		filepath.Join(crds, "databases.test.io_databasebackups.yaml")}}); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ arg, want string }{
		{"PGBACKUP_IMAGE=", "does not know the kind DatabaseRestore: install the CRDs first (make install)"},
		{"PGBACKUP_IMAGE=Image::", `PGBACKUP_IMAGE is "Image::": invalid reference format`},
		{"--allowed-services=site", `"site" is not NAMESPACE/SERVICE`},
	} {
		p := launch(t, "--kubeconfig="+kubeconfig(t, ""), test.arg)
		gomega.NewWithT(t).Eventually(p, "20s").Should(gexec.Exit())
		code, text := p.ExitCode(), p.Output()
		if code == 0 || !strings.Contains(text, test.want) {
			t.Errorf("%s: it ended with code %d and said:\n%s", test.arg, code, text)
		}
	}
}

func TestItServesWhatIsAllowedAndEndsInTime(t *testing.T) {
	f := newFixture(t)
	p := launch(t, "--kubeconfig="+f.operator(), "WATCH_NAMESPACE="+f.namespace,
		"PGBACKUP_IMAGE=registry:5000/pgbackup:17", "--allowed-services=*/site")
	f.ask("site")
	f.ask("other")
	if image := f.served("site").Spec.Template.Spec.Containers[0].Image; image != "registry:5000/pgbackup:17" {
		t.Errorf("the image is %s", image)
	}
	backup := &databasesv1.DatabaseBackup{}
	f.Eventually(func() (string, error) {
		err := f.Get(t.Context(), client.ObjectKey{Namespace: f.namespace, Name: "other"}, backup)
		ready := meta.FindStatusCondition(backup.Status.Conditions, databasesv1.ConditionReady)
		if err != nil || ready == nil {
			return "", err
		}
		return ready.Reason, nil
	}).Should(gomega.Equal(databasesv1.ReasonServiceNotAllowed))
	jobs := &batchv1.JobList{}
	f.Expect(f.List(t.Context(), jobs, client.InNamespace(f.namespace))).To(gomega.Succeed())
	f.Expect(jobs.Items).To(gomega.HaveLen(1), "the other one has none")
	f.Eventually(func() (bool, error) { // the last write for now: the operator would log an interrupted write as an error
		err := f.Get(t.Context(), client.ObjectKey{Namespace: f.namespace, Name: "site"}, backup)
		return backup.Status.InProgress, err
	}).Should(gomega.BeTrue())
	t.Logf("gone %s after SIGTERM", p.Stop().Round(time.Millisecond))
}
