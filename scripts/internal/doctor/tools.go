package doctor

import (
	"context"
	"errors"
	"fmt"
	"go/version"
	"os/exec"
	"strings"
)

// The oldest Go that the workshop's go.mod files accept.
const minimumGo = "go1.26.0"

func checkGo(ctx context.Context, m Machine) Finding {
	failed := Finding{Status: Failure,
		Why: "Everything is built from source, the control plane too; go.mod asks for Go 1.26.",
		Fix: "Install Go 1.26 or newer: https://go.dev/dl/\n" +
			"or, from Go 1.21 on, let this one fetch it:\nexport GOTOOLCHAIN=auto"}
	answer, err := m.run(ctx, "go", "version")
	if err != nil {
		return failed.because("Go does not work: %s.", oneLine(err.Error()))
	}
	path, _ := exec.LookPath("go")
	have := goVersion(answer)
	if version.Compare(have, minimumGo) < 0 {
		return failed.because("%s is too old, and does not fetch a newer one: %s.", path, oneLine(answer))
	}
	return okay("%s (%s)", have, path)
}

// goVersion returns the version in the output of `go version`, or "".
func goVersion(answer string) string {
	for word := range strings.FieldsSeq(answer) {
		if version.IsValid(word) {
			return word
		}
	}
	return ""
}

// checkGit runs git: on macOS without the command line tools, git exists, but only prints how to install the tools.
// make and bash work, because they have started this program.
func checkGit(ctx context.Context, m Machine) Finding {
	answer, err := m.run(ctx, "git", "--version")
	if err != nil {
		return Finding{Status: Failure, What: fmt.Sprintf("git does not work: %s.", oneLine(err.Error())),
			Why: "The workshop applies patches and finds its files with it.",
			Fix: "Install it with your package manager, such as `apt-get install git`, or on macOS:\nxcode-select --install"}
	}
	return okay("%s", strings.TrimSpace(answer))
}

// checkDocker also asks for the version of cgroups, which kind's nodes share with Docker.
func checkDocker(ctx context.Context, m Machine) Finding {
	if _, err := exec.LookPath("docker"); err != nil {
		return notApplicable("not found: only the kind environment needs it (make kind-up, kind-test); " +
			"everything else works without")
	}
	answer, err := m.run(ctx, "docker", "info", "--format", "{{.ServerVersion}} cgroup v{{.CgroupVersion}}")
	server, cgroup, _ := strings.Cut(answer, " ")
	if err == nil && strings.TrimSpace(server) == "" { // some versions exit 0 when only the client answers
		err = errors.New("no server version")
	}
	if err != nil {
		return Finding{Status: Warning, What: fmt.Sprintf("Docker does not answer: %s.", oneLine(err.Error())),
			Why: "The kind environment runs in Docker: make kind-up, make kind-test and each chapter's kind.sh. " +
				"Everything else works without.",
			Fix: "Start Docker again (Docker Desktop, or `sudo systemctl restart docker`); on Linux your " +
				"user must be in the group docker. Then see that this answers:\ndocker info"}
	}
	if strings.TrimSpace(cgroup) == "cgroup v1" {
		return Finding{Status: Warning, What: fmt.Sprintf("Docker %s uses cgroup version 1.", server),
			Why: "From Kubernetes 1.35 on, a kubelet refuses to start on it: a kind cluster does not come " +
				"up. Only kind is affected.",
			Fix: "Start the kernel with systemd.unified_cgroup_hierarchy=1, or use a newer distribution " +
				"(Debian 11, Ubuntu 22.04, Fedora 31). For WSL, in .wslconfig:\n" +
				"[wsl2]\nkernelCommandLine = cgroup_no_v1=all"}
	}
	return okay("server %s, %s", server, oneLine(cgroup))
}

// oneLine makes foreign output fit into a sentence.
func oneLine(text string) string {
	return strings.TrimRight(strings.Join(strings.Fields(text), " "), ".")
}
