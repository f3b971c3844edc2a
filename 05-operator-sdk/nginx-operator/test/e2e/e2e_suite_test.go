//go:build e2e

// Package e2e walks through the operator's life in a real cluster: image, deployment, real pods, removal.
// `make test-e2e` gives it a kind cluster.
package e2e

import (
	"cmp"
	"os"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/example/nginx-operator/test/utils"
)

// image is the operator's; IMG says another one.
var image = cmp.Or(os.Getenv("IMG"), "example.com/nginx-operator:e2e")

func TestE2E(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "nginx-operator")
}

var _ = BeforeSuite(func() {
	SetDefaultEventuallyTimeout(2 * time.Minute)
	SetDefaultEventuallyPollingInterval(500 * time.Millisecond)
	if os.Getenv("KUBECONFIG") == "" || os.Getenv("KIND_CLUSTER") == "" {
		Fail("KUBECONFIG and KIND_CLUSTER do not name a kind cluster: run make test-e2e")
	}
	By("building the operator's image and loading it into the cluster")
	run("make", "docker-build", "IMG="+image)
	run("kind", "load", "docker-image", "--name", os.Getenv("KIND_CLUSTER"), image)
	DeferCleanup(utils.Run, "docker", "rmi", "-f", image)
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

// field returns a function that asks for one field of a resource.
func field(what, name, path string) func() (string, error) {
	return func() (string, error) { return utils.Kubectl("get", what, name, "-o", "jsonpath={"+path+"}") }
}
