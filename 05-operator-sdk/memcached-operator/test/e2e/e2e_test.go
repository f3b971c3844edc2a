//go:build e2e

package e2e

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/example/memcached-operator/test/utils"
)

const (
	name      = "memcached-operator"
	namespace = name + "-system"
	manager   = name + "-controller-manager"
	sample    = "memcached-sample"
	instance  = "app.kubernetes.io/instance=" + sample
)

// condition returns a function that reads the status of a condition of the sample.
func condition(kind string) func() (string, error) {
	return field("memcached", sample, `.status.conditions[?(@.type=="`+kind+`")].status`)
}

// ask sends lines to the sample's Service, on one connection and so to one pod, and returns the answer. It uses the
// address of the Service, because static builds of busybox cannot look up names everywhere.
func ask(lines ...string) (string, error) {
	address, err := field("service", sample, ".spec.clusterIP")()
	if err != nil {
		return "", err
	}
	text := strings.Join(append(lines, "quit"), "\r\n") + "\r\n"
	return utils.Feed(text, "kubectl", "exec", "-i", "client", "--", "nc", "-w", "5", address, "11211")
}

var _ = Describe("memcached-operator", Ordered, func() {
	BeforeAll(func() {
		deploy()
		startClient()
		DeferCleanup(func() { _, _ = utils.Kubectl("delete", "memcached", "--all", "--wait") }) // the CRD may be deleted
		DeferCleanup(utils.Kubectl, "delete", "configmap", "settings", "--ignore-not-found")
	})

	AfterEach(func() { printWhenFailed([]string{"get", "memcacheds", "-o", "yaml"}, []string{"describe", "pods"}) })

	It("gives its metrics only to users who may read them", func(ctx SpecContext) {
		text := scrapeAsReader(ctx)
		Expect(text).To(ContainSubstring(`controller_runtime_max_concurrent_reconciles{controller="memcached"}`))
	})

	It("makes three memcacheds of the sample", func() {
		kubectl("apply", "-f", "config/samples/cache_v1alpha1_memcached.yaml")
		Eventually(condition("Available")).Should(Equal("True"))
		Eventually(condition("Progressing")).Should(Equal("False"))
		Expect(utils.Lines(kubectl("get", "pods", "-l", instance, "-o", "name"))).To(HaveLen(3))
		Eventually(func() string { return kubectl("get", "events", "--field-selector", "involvedObject.name="+sample) }).
			Should(ContainSubstring("Complete"))
	})

	It("serves them at one address", func() {
		Eventually(func() (string, error) { return ask("version") }).Should(HavePrefix("VERSION "))
		Expect(ask("set greeting 0 60 5", "hello", "get greeting")).To(SatisfyAll(
			ContainSubstring("STORED"), ContainSubstring("VALUE greeting 0 5"), ContainSubstring("hello")))
	})

	It("scales, within the bounds", func() {
		kubectl("scale", "memcached", sample, "--replicas=2")
		Eventually(field("deployment", sample, ".status.readyReplicas")).Should(Equal("2"))
		_, err := utils.Kubectl("scale", "memcached", sample, "--replicas=6")
		Expect(err).To(MatchError(ContainSubstring("less than or equal to 5")))
	})

	It("takes its settings from a ConfigMap, and follows it", func() {
		connections := func() (string, error) { return ask("stats settings") }
		kubectl("create", "configmap", "settings", "--from-literal=maxConnections=512")
		kubectl("patch", "memcached", sample, "--type=merge", "-p", `{"spec":{"configRef":{"name":"settings"}}}`)
		Eventually(connections).Should(ContainSubstring("STAT maxconns 512"))
		kubectl("patch", "configmap", "settings", "--type=merge", "-p", `{"data":{"maxConnections":"256"}}`)
		Eventually(condition("Progressing")).Should(Equal("False"))
		Eventually(connections).Should(ContainSubstring("STAT maxconns 256"))
	})

	It("rolls another image out in place", func() {
		uid := kubectl("get", "deployment", sample, "-o", "jsonpath={.metadata.uid}")
		kubectl("patch", "memcached", sample, "--type=merge", "-p", `{"spec":{"image":"memcached:1.6.39-alpine"}}`)
		Eventually(func() []string {
			return utils.Lines(kubectl("get", "pods", "-l", instance, "--field-selector=status.phase=Running",
				"-o", `jsonpath={range .items[*]}{.spec.containers[0].image}{"\n"}{end}`))
		}).Should(Equal([]string{"memcached:1.6.39-alpine", "memcached:1.6.39-alpine"}))
		Expect(kubectl("get", "deployment", sample, "-o", "jsonpath={.metadata.uid}")).To(Equal(uid))
	})

	It("refuses an image that no node could pull", func() {
		_, err := utils.Kubectl("patch", "memcached", sample, "--type=merge", "-p",
			`{"spec":{"image":"memcached:1.6:alpine"}}`)
		Expect(err).To(MatchError(ContainSubstring("spec.image")))
	})

	It("says what it did, and nothing as an error", func() {
		log := kubectl("-n", namespace, "logs", "deployment/"+manager, "--tail=-1")
		Expect(log).To(ContainSubstring("Applied child"))
		for _, line := range utils.Lines(log) {
			// The library that makes certificates logs the start of its work as errors.
			if !strings.Contains(line, `"logger":"cert-rotation"`) {
				Expect(line).NotTo(ContainSubstring(`"level":"error"`))
			}
		}
	})

	It("leaves nothing", func() {
		By("deleting the Memcached")
		kubectl("delete", "memcached", sample, "--wait")
		Eventually(func() string {
			return kubectl("get", "deployments,services,pods", "-l", instance, "-o", "name")
		}).Should(BeEmpty())

		By("removing the operator")
		run("make", "undeploy")
		left := kubectl("get",
			"namespaces,crds,clusterroles,clusterrolebindings,mutatingwebhookconfigurations,validatingwebhookconfigurations",
			"-o", "name")
		Expect(left).NotTo(Or(ContainSubstring("memcached-operator"), ContainSubstring("cache.example.com")))
	})
})
