//go:build e2e

// Package e2e tests the operator's life in a real cluster: images, deployment, a real PostgreSQL whose
// database is backed up, lost and restored, removal. `make test-e2e` gives it a kind cluster.
package e2e

import (
	"cmp"
	"os"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/example/databasebackup-operator/test/utils"
)

// image is the operator's image, jobImage the image of its Jobs; IMG and PGBACKUP_IMG name others.
var (
	image    = cmp.Or(os.Getenv("IMG"), "example.com/databasebackup-operator:e2e")
	jobImage = cmp.Or(os.Getenv("PGBACKUP_IMG"), "example.com/pgbackup:e2e")
)

func TestE2E(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "databasebackup-operator")
}

var _ = BeforeSuite(func() { buildImages([]string{"IMG=" + image, "PGBACKUP_IMG=" + jobImage}, image, jobImage) })

// apply applies a text, which may contain secrets that must not be on a command line.
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
