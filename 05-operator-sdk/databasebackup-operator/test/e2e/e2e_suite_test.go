//go:build e2e

// Package e2e walks through the operator's life in a real cluster: images, deployment, a real PostgreSQL whose
// database is backed up, lost and restored, removal. `make test-e2e` gives it a kind cluster.
package e2e

import (
	"cmp"
	"os"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/example/databasebackup-operator/test/utils"
)

// image is the operator's, jobImage that of its Jobs; IMG and PGBACKUP_IMG say others.
var (
	image    = cmp.Or(os.Getenv("IMG"), "example.com/databasebackup-operator:e2e")
	jobImage = cmp.Or(os.Getenv("PGBACKUP_IMG"), "example.com/pgbackup:e2e")
)

func TestE2E(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "databasebackup-operator")
}

var _ = BeforeSuite(func() {
	SetDefaultEventuallyTimeout(2 * time.Minute)
	SetDefaultEventuallyPollingInterval(500 * time.Millisecond)
	if os.Getenv("KUBECONFIG") == "" || os.Getenv("KIND_CLUSTER") == "" {
		Fail("KUBECONFIG and KIND_CLUSTER do not name a kind cluster: run make test-e2e")
	}
	By("building the images and loading them into the cluster")
	run("make", "docker-build", "IMG="+image, "PGBACKUP_IMG="+jobImage)
	for _, built := range []string{image, jobImage} {
		run("kind", "load", "docker-image", "--name", os.Getenv("KIND_CLUSTER"), built)
		DeferCleanup(utils.Run, "docker", "rmi", "-f", built)
	}
})

// run runs a program that must succeed.
func run(name string, args ...string) string {
	GinkgoHelper()
	out, err := utils.Run(name, args...)
	Expect(err).NotTo(HaveOccurred())
	return out
}

// kubectl runs kubectl, which must succeed.
func kubectl(args ...string) string {
	GinkgoHelper()
	return run("kubectl", args...)
}

// apply applies a text, which may hold what no command line should.
func apply(text string) {
	GinkgoHelper()
	_, err := utils.Feed(text, "kubectl", "apply", "-f", "-")
	Expect(err).NotTo(HaveOccurred())
}

// field returns a function that asks for one field of a resource in the scenario's namespace.
func field(what, name, path string) func() (string, error) {
	return func() (string, error) {
		return utils.Kubectl("-n", "orders", "get", what, name, "-o", "jsonpath={"+path+"}")
	}
}
