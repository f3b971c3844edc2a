//go:build e2e

package e2e

import (
	. "github.com/onsi/ginkgo/v2"

	"github.com/example/nginx-operator/test/utils"
)

// deploy deploys the operator for the specs of a container.
func deploy() {
	GinkgoHelper()
	By("deploying the operator")
	DeferCleanup(utils.Run, "make", "undeploy")
	run("make", "deploy", "IMG="+image)
	kubectl("-n", namespace, "rollout", "status", "deployment/"+manager, "--timeout=120s")
}

// startClient starts a pod in which a test can run commands.
func startClient() {
	GinkgoHelper()
	By("starting a pod that can ask")
	DeferCleanup(utils.Kubectl, "delete", "pod", "client", "--ignore-not-found", "--force", "--grace-period=0")
	kubectl("run", "client", "--image=busybox:1.37", "--restart=Never", "--image-pull-policy=IfNotPresent",
		"--command", "--", "sleep", "3600")
	kubectl("wait", "pod/client", "--for=condition=Ready", "--timeout=120s")
}
