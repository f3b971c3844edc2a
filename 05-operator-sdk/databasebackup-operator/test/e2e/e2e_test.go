//go:build e2e

package e2e

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/example/databasebackup-operator/test/utils"
)

const (
	namespace = "databasebackup-operator-system"
	manager   = "databasebackup-operator-controller-manager"
)

// passwords are the passwords of the two database users, generated in each run.
var passwords = map[string]string{"orders-admin": rand.Text(), "orders-backup": rand.Text()}

// credentials creates the Secret of a database user. The text goes through standard input.
func credentials(name, user, password string) {
	GinkgoHelper()
	apply(fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: %s, namespace: orders}\nstringData: {username: "+
		"%s, password: %s}\n", name, user, password))
}

// condition reads the status of a condition of the DatabaseBackup.
func condition(kind string) func() (string, error) {
	return field("dbb", "orders", `.status.conditions[?(@.type=="`+kind+`")].status`)
}

// reason reads the reason of a condition.
func reason(kind string) func() (string, error) {
	return field("dbb", "orders", `.status.conditions[?(@.type=="`+kind+`")].reason`)
}

// psql runs SQL in the database.
func psql(sql string) string {
	GinkgoHelper()
	out, err := utils.Feed(sql, "kubectl", "-n", "orders", "exec", "-i", "orders-0", "--",
		"psql", "-X", "-q", "-t", "-A", "-v", "ON_ERROR_STOP=1", "-U", "postgres", "-d", "orders")
	Expect(err).NotTo(HaveOccurred())
	return out
}

// rows is a checksum of all rows of all tables, in their order.
func rows() string {
	GinkgoHelper()
	return psql("SELECT count(*), md5(string_agg(o::text, E'\\n' ORDER BY id)) FROM orders o;\n" +
		"SELECT count(*), md5(string_agg(c::text, E'\\n' ORDER BY id)) FROM customers c;")
}

// listed returns the backups in status, newest first: name, snapshot, verification.
func listed(name string) (all [][]string) {
	GinkgoHelper()
	out := kubectl("-n", "orders", "get", "dbb", name, "-o",
		`jsonpath={range .status.backups[*]}{.name} {.snapshot} {.verified}{"\n"}{end}`)
	for _, line := range utils.Lines(out) {
		all = append(all, strings.Fields(line))
	}
	return all
}

// restic runs restic on the repository of the volume, in a pod that mounts it.
func restic(args ...string) string {
	GinkgoHelper()
	return kubectl(append([]string{"-n", "orders", "exec", "look", "--", "restic", "--no-cache", "--no-lock"}, args...)...)
}

// scenario reads a file of the scenario, with some texts replaced.
func scenario(file string, replace ...string) string {
	GinkgoHelper()
	dir, err := utils.ProjectDir()
	Expect(err).NotTo(HaveOccurred())
	text, err := os.ReadFile(filepath.Join(dir, "scenario", file))
	Expect(err).NotTo(HaveOccurred())
	return strings.NewReplacer(replace...).Replace(string(text))
}

// restore creates the scenario's DatabaseRestore for a backup.
func restore(name, backup string) {
	GinkgoHelper()
	apply(scenario("restore.yaml", "orders-29012345", backup, "name: orders-back\n", "name: "+name+"\n"))
}

// succeeded reads the outcome of a DatabaseRestore: the status and the reason of its condition.
func succeeded(name string) func() (string, error) {
	return field("dbr", name, `.status.conditions[?(@.type=="Succeeded")]['status','reason']`)
}

// startDatabase starts PostgreSQL with orders in it, in a new namespace.
func startDatabase() {
	GinkgoHelper()
	kubectl("apply", "-f", "scenario/namespace.yaml")
	credentials("orders-admin", "postgres", passwords["orders-admin"])
	credentials("orders-backup", "backup", passwords["orders-backup"])
	kubectl("apply", "-f", "scenario/database.yaml")
	kubectl("-n", namespace, "rollout", "status", "deployment/"+manager, "--timeout=180s")
	kubectl("-n", "orders", "rollout", "status", "statefulset/orders", "--timeout=180s")
}

var _ = Describe("databasebackup-operator", Ordered, func() {
	var before string
	var names []string // of all backups that were seen

	BeforeAll(func() {
		By("deploying the operator")
		DeferCleanup(utils.Run, "make", "undeploy", "FORCE=1")
		run("make", "deploy", "IMG="+image, "PGBACKUP_IMG="+jobImage)
		By("starting PostgreSQL with orders in it")
		DeferCleanup(utils.Kubectl, "delete", "namespace", "orders", "--ignore-not-found")
		DeferCleanup(func() { // a finalizer needs the operator; the kind may be gone
			_, _ = utils.Kubectl("-n", "orders", "delete", "databaserestores,databasebackups", "--all", "--timeout=60s")
		})
		startDatabase()
		before = rows()
		Expect(before).To(HavePrefix("10000|"))
	})

	AfterEach(func() {
		printWhenFailed([]string{"-n", "orders", "get", "dbb,dbr,jobs,pods", "-o", "yaml"},
			[]string{"-n", "orders", "get", "events"},
			[]string{"-n", "orders", "logs", "-l", "app.kubernetes.io/name=databasebackup", "--all-containers",
				"--tail=20", "--prefix"})
	})

	It("refuses a schedule that never comes", func() {
		text, err := os.ReadFile("../../scenario/backup.yaml")
		Expect(err).NotTo(HaveOccurred())
		Eventually(func() error {
			_, err := utils.Feed(strings.Replace(string(text), `"* * * * *"`, `"0 0 30 2 *"`, 1), "kubectl", "apply",
				"--dry-run=server", "-f", "-")
			return err
		}).Should(MatchError(SatisfyAll(ContainSubstring("spec.schedule"), ContainSubstring("never comes"))))
	})

	It("tells the original's sample what it lacks", func() {
		warned := kubectl("-n", "orders", "apply", "-f", "config/samples/databases_v1_databasebackup.yaml")
		Expect(warned).To(ContainSubstring("Warning: "))
		Eventually(field("dbb", "databasebackup-sample", `.status.conditions[?(@.type=="Ready")].reason`)).
			Should(Equal("IncompleteSpec"))
		Expect(kubectl("-n", "orders", "get", "jobs", "-o", "name")).To(BeEmpty())
		kubectl("-n", "orders", "delete", "dbb", "databasebackup-sample")
	})

	It("takes three backups, restores each to verify it, and keeps two", func() {
		started := time.Now()
		kubectl("apply", "-f", "scenario/backup.yaml")
		seen := map[string]bool{}
		Eventually(func() int {
			for _, backup := range listed("orders") {
				Expect(backup).To(HaveLen(3))
				Expect(backup[2]).To(Equal("Restore"), "of %s", backup[0])
				if !seen[backup[0]] {
					seen[backup[0]] = true
					names = append(names, backup[0])
					GinkgoWriter.Printf("after %.0f s: backup %s, verified by restoring it\n",
						time.Since(started).Seconds(), backup[0])
				}
			}
			return len(names)
		}, "4m").Should(Equal(3))
		Expect(listed("orders")).To(HaveLen(2))
		Expect(listed("orders")[0][0]).To(Equal(names[2]))
		for _, kind := range []string{"Ready", "TargetReady", "BackupSucceeded", "RestoreVerified"} {
			Eventually(condition(kind)).Should(Equal("True"), kind)
		}
	})

	It("rests when it is suspended, and has in the repository what status lists", func() {
		kubectl("-n", "orders", "patch", "dbb", "orders", "--type=merge", "-p", `{"spec":{"suspend":true,"backoffLimit":0}}`)
		Eventually(reason("Ready")).Should(Equal("Suspended"))
		Eventually(field("dbb", "orders", ".status.activeJob")).Should(BeEmpty())
		secret := kubectl("-n", "orders", "get", "dbb", "orders", "-o", "jsonpath={.status.encryptionSecretName}")
		apply(scenario("look.yaml", "example.com/pgbackup:v0.0.1", jobImage, "secretName: repository", "secretName: "+secret))
		kubectl("-n", "orders", "wait", "pod/look", "--for=condition=Ready", "--timeout=60s")
		snapshots := restic("snapshots", "--tag=dump", "--compact")
		for _, backup := range listed("orders") {
			Expect(snapshots).To(ContainSubstring(backup[1]))
		}
		Expect(restic("check", "--read-data")).To(ContainSubstring("no errors were found"))
	})

	var last string // when the last backup was complete

	It("follows a trigger", func() { // with a wrong password: its effect is checked below
		last = kubectl("-n", "orders", "get", "dbb", "orders", "-o", "jsonpath={.status.lastBackupTime}")
		credentials("orders-backup", "backup", "wrong")
		kubectl("-n", "orders", "annotate", "dbb", "orders", "databases.test.io/trigger=wrong-password", "--overwrite")
	})

	It("restores into a new database, and refuses one that is not empty", func() {
		backup := listed("orders")[0][0]
		psql("DROP TABLE orders;")
		restore("orders-careful", backup)
		Eventually(succeeded("orders-careful")).Should(Equal("False TargetNotEmpty"))
		kubectl("-n", "orders", "exec", "orders-0", "--", "psql", "-X", "-q", "-U", "postgres",
			"-c", "ALTER DATABASE orders RENAME TO orders_lost")
		restore("orders-back", backup)
		Eventually(succeeded("orders-back")).Should(Equal("True RestoreSucceeded"))
		Expect(rows()).To(Equal(before))
	})

	It("says that a run failed, and why, and does not call it a backup", func() {
		Eventually(reason("BackupSucceeded")).Should(Equal("AuthenticationFailed"))
		Expect(condition("BackupSucceeded")()).To(Equal("False"))
		Expect(field("dbb", "orders", ".status.lastHandledTrigger")()).To(Equal("wrong-password"))
		Expect(field("dbb", "orders", ".status.lastBackupTime")()).To(Equal(last))
		Expect(listed("orders")).To(HaveLen(2))
		credentials("orders-backup", "backup", passwords["orders-backup"])
	})

	It("shows no password", func() {
		shown := kubectl("-n", "orders", "get", "dbb,dbr,jobs,pods,events", "-o", "yaml") +
			kubectl("-n", "orders", "logs", "-l", "app.kubernetes.io/name=databasebackup", "--all-containers", "--tail=-1",
				"--ignore-errors") +
			kubectl("-n", namespace, "logs", "deployment/"+manager, "--tail=-1")
		Expect(shown).To(ContainSubstring("TargetNotEmpty"))
		for name, password := range passwords {
			Expect(shown).NotTo(ContainSubstring(password), "the password of %s", name)
		}
	})

	It("gives its metrics to who may read them, and to nobody else", func(ctx SpecContext) {
		text := scrapeAsReader(ctx)
		Expect(text).To(SatisfyAll(
			ContainSubstring(`databasebackup_condition{name="orders",namespace="orders",reason="AuthenticationFailed",`+
				`status="False",type="BackupSucceeded"} 1`), // counters would begin at 0 after a restart
			ContainSubstring(`databasebackup_last_success_timestamp_seconds{name="orders",namespace="orders"}`)))
	})

	It("logs nothing as an error", func() {
		for _, line := range utils.Lines(kubectl("-n", namespace, "logs", "deployment/"+manager, "--tail=-1")) {
			// The library that makes certificates logs the start of its work as errors.
			if !strings.Contains(line, `"logger":"cert-rotation"`) {
				Expect(line).NotTo(ContainSubstring(`"level":"error"`))
			}
		}
	})

	It("stores backups on an S3 server and on a REST server, too", func() {
		longOnly()
		apply(storeSecrets())
		kubectl("apply", "-f", "scenario/stores.yaml")
		kubectl("-n", "orders", "rollout", "status", "deployment/s3", "--timeout=120s")
		kubectl("-n", "orders", "rollout", "status", "deployment/rest", "--timeout=120s")
		for name, destination := range map[string]string{
			"s3":   "s3: {endpoint: 'http://s3.orders.svc:9000', bucket: backups, credentialsSecretRef: {name: store-s3}}",
			"rest": "rest: {url: 'http://rest.orders.svc:8000/orders', credentialsSecretRef: {name: store-rest}}",
		} {
			apply(elsewhere("orders-"+name, destination))
		}
		for _, name := range []string{"orders-s3", "orders-rest"} {
			Eventually(verified(name), "3m").Should(Equal("True RestoreVerified"), name)
		}
		kubectl("-n", "orders", "patch", "dbb", "orders-s3", "--type=merge", "-p", `{"spec":{"deletionPolicy":"Delete"}}`)
		Eventually(field("dbb", "orders-s3", ".metadata.finalizers")).ShouldNot(BeEmpty())
		kubectl("-n", "orders", "delete", "dbb", "orders-s3", "orders-rest", "--timeout=90s")
	})

	It("brings the rows back in a new cluster, from a store outside of both", func() {
		longOnly()
		disaster()
	})

	It("leaves no snapshot where the policy is Delete, and nothing in the cluster", func() {
		By("deleting the DatabaseBackup and its snapshots")
		kubectl("-n", "orders", "patch", "dbb", "orders", "--type=merge", "-p", `{"spec":{"deletionPolicy":"Delete"}}`)
		Eventually(field("dbb", "orders", ".metadata.finalizers")).Should(ContainSubstring("databases.test.io/files"))
		kubectl("-n", "orders", "delete", "dbr,dbb", "--all", "--timeout=90s")
		Expect(restic("snapshots", "--json")).To(HavePrefix("[]"))
		Eventually(func() string { return kubectl("-n", "orders", "get", "jobs", "-o", "name") }).Should(BeEmpty())

		By("removing the database and the operator")
		kubectl("delete", "namespace", "orders")
		run("make", "undeploy")
		left := kubectl("get",
			"namespaces,crds,clusterroles,clusterrolebindings,validatingwebhookconfigurations", "-o", "name")
		Expect(left).NotTo(Or(ContainSubstring("databasebackup-operator"), ContainSubstring("databases.test.io")))
	})
})
