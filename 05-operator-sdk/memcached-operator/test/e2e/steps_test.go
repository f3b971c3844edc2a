//go:build e2e

package e2e

import (
	"os"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/example/memcached-operator/test/utils"
)

// buildImages builds images, with the arguments that name them to make, and loads them into the kind cluster.
func buildImages(args []string, images ...string) {
	GinkgoHelper()
	SetDefaultEventuallyTimeout(2 * time.Minute)
	SetDefaultEventuallyPollingInterval(500 * time.Millisecond)
	if os.Getenv("KUBECONFIG") == "" || os.Getenv("KIND_CLUSTER") == "" {
		Fail("KUBECONFIG and KIND_CLUSTER do not name a kind cluster: run make test-e2e")
	}
	By("building the images and loading them into the cluster")
	run("make", append([]string{"docker-build"}, args...)...)
	for _, image := range images {
		run("kind", "load", "docker-image", "--name", os.Getenv("KIND_CLUSTER"), image)
		DeferCleanup(utils.Run, "docker", "rmi", "-f", image)
	}
}

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

// printWhenFailed prints the operator's log and the output of kubectl if the spec failed.
func printWhenFailed(commands ...[]string) {
	if CurrentSpecReport().Failed() {
		for _, args := range append([][]string{{"-n", namespace, "logs", "deployment/" + manager}}, commands...) {
			out, _ := utils.Kubectl(args...)
			GinkgoWriter.Println(strings.Join(args, " ") + "\n" + out)
		}
	}
}

// scrapeAsReader checks that a service account needs the operator's role to read its metrics, and returns them.
func scrapeAsReader(ctx SpecContext) string {
	GinkgoHelper()
	for _, account := range []string{"e2e-metrics", "e2e-nobody"} { // the API server caches a refusal for half a minute
		DeferCleanup(utils.Kubectl, "delete", "serviceaccount", account, "--ignore-not-found")
		kubectl("create", "serviceaccount", account)
	}
	DeferCleanup(utils.Kubectl, "delete", "clusterrolebinding", "e2e-metrics", "--ignore-not-found")
	kubectl("create", "clusterrolebinding", "e2e-metrics",
		"--clusterrole="+strings.TrimSuffix(namespace, "-system")+"-metrics-reader", "--serviceaccount=default:e2e-metrics")
	metrics := func(token string) func() (int, error) {
		return func() (int, error) {
			code, _, err := utils.Metrics(ctx, namespace, manager+"-metrics-service", token)
			return code, err
		}
	}
	token := kubectl("create", "token", "e2e-metrics")
	Eventually(metrics("")).Should(Equal(401))
	Eventually(metrics(kubectl("create", "token", "e2e-nobody"))).Should(Equal(403))
	Eventually(metrics(token)).Should(Equal(200))
	_, text, err := utils.Metrics(ctx, namespace, manager+"-metrics-service", token)
	Expect(err).NotTo(HaveOccurred())
	return text
}
