package main

import (
	"fmt"
	"testing"

	"github.com/onsi/gomega"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example/databasebackup-operator/internal/testenv"
	"github.com/example/databasebackup-operator/test/programtest"
)

// A user who may read metrics gets those of a DatabaseBackup, as Prometheus does: over TLS, with a token.
// TestAScrapeHasTheFiguresOfABackup, in ../internal/controller, compares all of them.
func TestMetricsOfTheProgram(t *testing.T) {
	f := newFixture(t)
	address := fmt.Sprint("127.0.0.1:", testenv.FreePort(t))
	launch(t, "--kubeconfig="+f.operator(), "WATCH_NAMESPACE="+f.namespace, "PGBACKUP_IMAGE=pgbackup:17",
		"--metrics-bind-address="+address)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "prometheus"}}
	f.create(account)
	f.allow(rbacv1.Subject{Kind: "ServiceAccount", Namespace: f.namespace, Name: account.Name},
		"metrics_reader_role.yaml", true)
	asked := &authenticationv1.TokenRequest{}
	f.Expect(f.SubResource("token").Create(t.Context(), account, asked)).To(gomega.Succeed())
	f.ask("site")
	sample := fmt.Sprintf(`databasebackup_attempts_total{name="site",namespace=%q} 1`, f.namespace)
	f.Eventually(func() string {
		_, body := programtest.Get("https://"+address+"/metrics", asked.Status.Token)
		return body
	}).Should(gomega.ContainSubstring(sample))
}
