//go:build e2e

package e2e

import (
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/example/nginx-operator/test/utils"
)

const (
	name      = "nginx-operator"
	namespace = name + "-system"
	manager   = name + "-controller-manager"
	sample    = "nginx-sample"
	instance  = "app.kubernetes.io/instance=" + sample
)

// nodes returns the pods in the status of an Nginx.
func nodes(name string) []string {
	GinkgoHelper()
	return utils.Lines(kubectl("get", "nginx", name, "-o", `jsonpath={range .status.nodes[*]}{@}{"\n"}{end}`))
}

// running returns the sample's pods that run and are not being deleted, sorted.
func running() []string {
	GinkgoHelper()
	out := kubectl("get", "pods", "-l", instance, "--field-selector=status.phase=Running",
		"-o", `jsonpath={range .items[*]}{.metadata.name} {.metadata.deletionTimestamp}{"\n"}{end}`)
	var names []string
	for _, line := range utils.Lines(out) {
		if name, deleted, _ := strings.Cut(line, " "); deleted == "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// fetch requests the page of an Nginx's Service. It uses the address of the Service, because static builds of
// busybox cannot look up names everywhere.
func fetch(name string) func() (string, error) {
	return func() (string, error) {
		address, err := field("service", name, ".spec.clusterIP")()
		if err != nil {
			return "", err
		}
		return utils.Kubectl("exec", "client", "--", "timeout", "10", "wget", "-q", "-O", "-", "http://"+address+"/")
	}
}

var _ = Describe("nginx-operator", Ordered, func() {
	BeforeAll(func() {
		deploy()
		startClient()
		DeferCleanup(func() { _, _ = utils.Kubectl("delete", "nginx", "--all", "--wait") }) // the CRD may be deleted
		DeferCleanup(utils.Kubectl, "delete", "configmap", "nginx-content", "--ignore-not-found")
	})

	AfterEach(func() { printWhenFailed([]string{"get", "nginxes", "-o", "yaml"}, []string{"describe", "pods"}) })

	It("gives its metrics only to users who may read them", func(ctx SpecContext) {
		scrapeAsReader(ctx)
	})

	It("makes three nginx of the sample, and lists them", func() {
		kubectl("apply", "-f", "config/samples/proxy_v1alpha1_nginx.yaml")
		Eventually(func() []string { return nodes(sample) }).Should(HaveLen(3))
		Expect(nodes(sample)).To(Equal(running()))
		Expect(nodes(sample)).To(HaveEach(HavePrefix("nginx-sample-")))
		Eventually(field("nginx", sample, `.status.conditions[?(@.type=="Progressing")].status`)).Should(Equal("False"))
		Eventually(func() string { return kubectl("get", "events", "--field-selector", "involvedObject.name="+sample) }).
			Should(ContainSubstring("Complete"))
	})

	It("lists them truly after one was killed", func() {
		before := nodes(sample)
		kubectl("delete", "pod", before[0], "--wait=false")
		Eventually(func() []string { return nodes(sample) }).
			Should(SatisfyAll(HaveLen(3), Not(ContainElement(before[0]))))
		Eventually(running).Should(Equal(nodes(sample)))
	})

	It("lists them truly after a container died, and was started again", func() {
		before := nodes(sample)
		_, _ = utils.Kubectl("exec", before[0], "--", "sh", "-c", "kill 1") // the shell may die with its container
		Eventually(field("pod", before[0], ".status.containerStatuses[0].restartCount")).Should(Equal("1"))
		Eventually(func() []string { return nodes(sample) }).Should(Equal(before))
	})

	It("serves pages, and those of a ConfigMap", func() {
		Eventually(fetch(sample)).Should(ContainSubstring("<html"))
		kubectl("apply", "-f", "config/samples/proxy_v1alpha1_nginx_content.yaml")
		Eventually(fetch("nginx-content")).Should(ContainSubstring("<h1>Hello, World!</h1>"))
		kubectl("patch", "configmap", "nginx-content", "--type=merge", "-p", `{"data":{"index.html":"<h1>Changed</h1>"}}`)
		Eventually(fetch("nginx-content")).Should(ContainSubstring("<h1>Changed</h1>"))
		Expect(nodes(sample)).To(Equal(running()), "two Nginx do not mix")
	})

	It("scales", func() {
		kubectl("scale", "nginx", sample, "--replicas=1")
		Eventually(func() []string { return nodes(sample) }).Should(HaveLen(1))
	})

	It("says what it did, and nothing as an error", func() {
		log := kubectl("-n", namespace, "logs", "deployment/"+manager, "--tail=-1")
		Expect(log).To(ContainSubstring("Applied child"))
		Expect(log).NotTo(ContainSubstring(`"level":"error"`))
	})

	It("leaves nothing", func() {
		By("deleting the Nginxes")
		kubectl("delete", "nginx", "--all", "--wait")
		Eventually(func() string {
			return kubectl("get", "deployments,services,pods", "-l", "app.kubernetes.io/managed-by=nginx-operator", "-o", "name")
		}).Should(BeEmpty())

		By("removing the operator")
		run("make", "undeploy")
		left := kubectl("get", "namespaces,crds,clusterroles,clusterrolebindings", "-o", "name")
		Expect(left).NotTo(Or(ContainSubstring("nginx-operator"), ContainSubstring("proxy.example.com")))
	})
})
