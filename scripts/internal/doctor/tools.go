package doctor

import (
	"context"
	"errors"
	"fmt"
	"go/version"
	"os/exec"
	"runtime"
	"slices"
	"strings"
)

// The oldest Go that the workshop's go.mod files accept.
const minimumGo = "go1.26.0"

func checkGo(ctx context.Context, m Machine) Diagnosis {
	answer, err := m.run(ctx, "go", "version")
	if err != nil {
		return report(Failure, "Go does not work: %s.", oneLine(err.Error()))
	}
	path, _ := exec.LookPath("go")
	words := strings.Fields(answer)
	// A development version has words before and after its number.
	at := slices.IndexFunc(words, version.IsValid)
	if at < 0 || version.Compare(words[at], minimumGo) < 0 {
		return report(Failure, "%s is too old, and does not fetch a newer one: %s.", path, oneLine(answer))
	}
	return report(OK, "%s (%s)", words[at], path)
}

// checkGit runs git: on macOS without the command line tools, git exists, but only prints how to install the tools.
// make and bash work, because they have started this program.
func checkGit(ctx context.Context, m Machine) Diagnosis {
	answer, err := m.run(ctx, "git", "--version")
	if err != nil {
		return report(Failure, "git does not work: %s.", oneLine(err.Error()))
	}
	return report(OK, "%s", strings.TrimSpace(answer))
}

// checkLines looks for a checkout of Git for Windows, whose core.autocrlf adds a carriage return to each line. The
// Makefile looks for them in scripts/workshop, without which this check does not start.
func checkLines(ctx context.Context, m Machine) Diagnosis {
	files, err := m.run(ctx, "git", "-C", m.Repository, "ls-files", "--eol")
	if err != nil {
		return report(NotApplicable, "not a clone, so git has converted nothing")
	}
	converted := 0
	for line := range strings.Lines(files) { // index, working tree, attributes, path
		if words := strings.Fields(line); len(words) > 1 && words[0] == "i/lf" && words[1] != "w/lf" && words[1] != "w/" {
			converted++
		}
	}
	if converted == 0 {
		return report(OK, "no file has been converted by git")
	}
	return report(Failure, "%d files have CRLF at the ends of lines.", converted)
}

// settings lists what a reader may have set for another project, and the values that have no effect on the workshop.
var settings = []struct {
	name, effect string
	harmless     func(value string) bool
}{
	{"GOFLAGS", "each go command gets these flags", oneOf("", "-mod=readonly", "-mod=readonly -trimpath")}, // or ours
	{"GOWORK", "the modules of the workshop are not in this workspace", oneOf("", "off", "auto")},
	{"GOBIN", "`go install` writes there", oneOf("")},
	{"GOOS", "programs are built for another machine: Exec format error", oneOf("", runtime.GOOS)},
	{"GOARCH", "programs are built for another machine: Exec format error", oneOf("", runtime.GOARCH)},
	{"GOTOOLCHAIN", "go.mod asks for Go 1.26", func(value string) bool { // local, auto, and go1.25+auto are no version
		return !version.IsValid(value) || version.Compare(value, minimumGo) >= 0
	}},
}

func oneOf(values ...string) func(string) bool {
	return func(value string) bool { return slices.Contains(values, value) }
}

// checkVariables asks the go command, which knows the variables of this terminal and the settings of `go env -w`. No
// terminal shows those.
func checkVariables(ctx context.Context, m Machine) Diagnosis {
	var names, found []string
	for _, setting := range settings {
		answer, _ := m.run(ctx, "go", "env", setting.name) // checkGo reports a go command that does not work
		if value := strings.TrimSpace(answer); !setting.harmless(value) {
			names = append(names, setting.name)
			found = append(found, fmt.Sprintf("%s=%s (%s)", setting.name, value, setting.effect))
		}
	}
	if len(found) == 0 {
		return report(OK, "no setting of Go for another project")
	}
	finding := report(Warning, "%s.", strings.Join(found, "; "))
	list := strings.Join(names, " ")
	finding.Fix = "The targets of make are not affected. For your own commands, run\n" +
		"unset " + list + "\ngo env -u " + list + "\nor, in a terminal for the pages:\neval \"$(scripts/workshop env)\""
	return finding
}

// checkDocker also asks for the version of cgroups, which kind's nodes share with Docker.
func checkDocker(ctx context.Context, m Machine) Diagnosis {
	if _, err := exec.LookPath("docker"); err != nil {
		return report(NotApplicable, "not found: only the kind environment needs it (make kind-up, kind-test); "+
			"everything else works without")
	}
	answer, err := m.run(ctx, "docker", "info", "--format", "{{.ServerVersion}} cgroup v{{.CgroupVersion}}")
	server, cgroup, _ := strings.Cut(answer, " ")
	if err == nil && server == "" { // some versions exit 0 when only the client answers
		err = errors.New("no server version")
	}
	if err != nil {
		return report(Warning, "Docker does not answer: %s.", oneLine(err.Error()))
	}
	if strings.TrimSpace(cgroup) == "cgroup v1" {
		return Diagnosis{Status: Warning, What: fmt.Sprintf("Docker %s uses cgroup version 1.", server),
			Why: "From Kubernetes 1.35 on, a kubelet refuses to start on it: a kind cluster does not come " +
				"up. Only kind is affected.",
			Fix: "Start the kernel with systemd.unified_cgroup_hierarchy=1, or use a newer distribution " +
				"(Debian 11, Ubuntu 22.04, Fedora 31). For WSL, in .wslconfig:\n" +
				"[wsl2]\nkernelCommandLine = cgroup_no_v1=all"}
	}
	return report(OK, "server %s, %s", server, oneLine(cgroup))
}

// oneLine makes foreign output fit into a sentence.
func oneLine(text string) string {
	return strings.TrimRight(strings.Join(strings.Fields(text), " "), ".")
}
