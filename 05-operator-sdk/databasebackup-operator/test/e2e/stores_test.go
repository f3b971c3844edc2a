//go:build e2e

package e2e

import (
	"crypto/rand"
	"crypto/sha1" //nolint:gosec // the format of an htpasswd file
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/example/databasebackup-operator/test/utils"
)

// storePassword is the password of both stores.
var storePassword = rand.Text()

// storeSecrets has the credentials of the stores: for the Jobs, and for the servers.
func storeSecrets() string {
	return fmt.Sprintf(`apiVersion: v1
kind: Secret
metadata: {name: store-s3, namespace: orders}
stringData: {AWS_ACCESS_KEY_ID: backups, AWS_SECRET_ACCESS_KEY: %[1]s, pair: "backups,%[1]s"}
---
apiVersion: v1
kind: Secret
metadata: {name: store-rest, namespace: orders}
stringData: {username: backups, password: %[1]s, htpasswd: "%[2]s"}
`, storePassword, htpasswd())
}

// longOnly skips a spec that takes minutes more: LONG=1 runs it, as the nightly workflow does.
func longOnly() {
	if os.Getenv("LONG") == "" {
		Skip("LONG=1 runs it")
	}
}

func htpasswd() string {
	sum := sha1.Sum([]byte(storePassword)) //nolint:gosec // see the import
	return "backups:{SHA}" + base64.StdEncoding.EncodeToString(sum[:])
}

// elsewhere is the scenario's DatabaseBackup with another name and destination. It runs once, at once.
func elsewhere(name, destination string) string {
	GinkgoHelper()
	return scenario("backup.yaml", "name: orders\n  namespace", "name: "+name+"\n  namespace",
		`schedule: "* * * * *"`, `schedule: "@yearly"`,
		"    persistentVolumeClaim:\n      claimName: backups\n", "    "+destination+"\n")
}

// verified reads whether the newest backup of a DatabaseBackup was restored: the status and the reason of its condition.
func verified(name string) func() (string, error) {
	return field("dbb", name, `.status.conditions[?(@.type=="RestoreVerified")]['status','reason']`)
}

// disaster takes a backup on a store outside of the cluster, and restores it in another cluster, which has nothing of the
// first one but the password of the repository.
func disaster() {
	By("starting a REST server beside the cluster")
	store := os.Getenv("KIND_CLUSTER") + "-store"
	users := GinkgoT().TempDir()
	Expect(os.Chmod(users, 0o755)).To(Succeed())
	Expect(os.WriteFile(filepath.Join(users, "htpasswd"), []byte(htpasswd()+"\n"), 0o644)).To(Succeed())
	DeferCleanup(utils.Run, "docker", "rm", "-f", "-v", store)
	run("docker", "run", "-d", "--name", store, "--network=kind", "--user=65532", "--tmpfs=/data:mode=1777",
		"-v", users+":/users:ro", "--entrypoint=rest-server", "restic/rest-server:0.14.0",
		"--path=/data", "--listen=:8000", "--htpasswd-file=/users/htpasswd")
	address := run("docker", "inspect", "-f", "{{.NetworkSettings.Networks.kind.IPAddress}}", store)
	url := "http://" + address + ":8000/orders"

	By("backing up to it")
	before := rows()
	apply(elsewhere("orders-outside", "rest: {url: '"+url+"', credentialsSecretRef: {name: store-rest}}"))
	Eventually(verified("orders-outside"), "3m").Should(Equal("True RestoreVerified"))
	snapshot := listed("orders-outside")[0][1]
	secret := kubectl("-n", "orders", "get", "dbb", "orders-outside", "-o", "jsonpath={.status.encryptionSecretName}")
	password := kubectl("-n", "orders", "get", "secret", secret, "-o", "jsonpath={.data.password}")

	By("making another cluster, with an empty database")
	another := os.Getenv("KIND_CLUSTER") + "-another"
	first := os.Getenv("KUBECONFIG")
	second := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
	create := []string{"create", "cluster", "--name", another, "--kubeconfig", second, "--wait", "180s"}
	if node := os.Getenv("KIND_NODE_IMAGE"); node != "" {
		create = append(create, "--image", node)
	}
	DeferCleanup(utils.Run, "kind", "delete", "cluster", "--name", another, "--kubeconfig", second)
	run("kind", create...)
	for _, name := range []string{image, jobImage, "postgres:17"} {
		run("kind", "load", "docker-image", "--name", another, name)
	}
	DeferCleanup(os.Setenv, "KUBECONFIG", first)
	Expect(os.Setenv("KUBECONFIG", second)).To(Succeed())
	run("make", "deploy", "IMG="+image, "PGBACKUP_IMG="+jobImage)
	startDatabase()
	kubectl("-n", "orders", "exec", "orders-0", "--", "psql", "-X", "-q", "-U", "postgres", "-c", "DROP DATABASE orders")

	By("restoring the snapshot, with nothing but the store and the password")
	apply(storeSecrets())
	apply("apiVersion: v1\nkind: Secret\nmetadata: {name: repository, namespace: orders}\ndata: {password: " + password + "}\n")
	apply(scenario("disaster.yaml", "http://192.0.2.1:8000/orders", url, "1a2b3c4d", snapshot))
	Eventually(succeeded("orders-from-the-store"), "3m").Should(Equal("True RestoreSucceeded"))
	Expect(rows()).To(Equal(before))
	Expect(strings.Fields(kubectl("-n", "orders", "get", "dbb", "-o", "name"))).To(BeEmpty())
	Expect(os.Setenv("KUBECONFIG", first)).To(Succeed())
	kubectl("-n", "orders", "delete", "dbb", "orders-outside")
}
