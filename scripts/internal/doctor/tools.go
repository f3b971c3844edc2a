package doctor

import (
	"context"
	"fmt"
	"go/version"
	"strings"
)

// The oldest Go that the workshop's go.mod files accept.
const minimumGo = "go1.26.0"

const goFix = "Install Go 1.26 or newer: https://go.dev/dl/"

func checkGo(ctx context.Context, m Machine) Finding {
	const why = "Everything is built from source, the control plane too; go.mod asks for Go 1.26."
	path, err := m.LookPath("go")
	if err != nil {
		return Finding{Status: Failure, What: "There is no go in PATH.", Why: why, Fix: goFix}
	}
	answer, err := m.Run(ctx, "go", "version")
	if err != nil {
		return Finding{Status: Failure, What: fmt.Sprintf("%s does not work: %v.", path, err),
			Why: why, Fix: goFix}
	}
	have := goVersion(answer)
	if have == "" {
		return Finding{Status: Warning, Why: why, Fix: goFix,
			What: fmt.Sprintf("%s gives a version that says nothing: %q.", path, oneLine(answer))}
	}
	if version.Compare(have, minimumGo) >= 0 {
		return okay("%s (%s)", have, path)
	}
	// From 1.21 on, an older go command may fetch the toolchain that go.mod asks for.
	toolchain, err := m.goEnv(ctx, "GOTOOLCHAIN")
	if err == nil && (toolchain == "auto" || strings.HasSuffix(toolchain, "+auto")) &&
		version.Compare(have, "go1.21") >= 0 {
		return okay("%s (%s); it fetches Go 1.26 by itself (GOTOOLCHAIN=%s)", have, path, toolchain)
	}
	fix := goFix
	if version.Compare(have, "go1.21") >= 0 {
		fix += "\nor let this one fetch it:\nexport GOTOOLCHAIN=auto"
	}
	return Finding{Status: Failure, Why: why, Fix: fix,
		What: fmt.Sprintf("%s (%s) is too old and does not fetch a newer one (GOTOOLCHAIN=%s).",
			have, path, toolchain)}
}

// goVersion picks the version out of an answer of `go version`; "" when there is none.
func goVersion(answer string) string {
	for word := range strings.FieldsSeq(answer) {
		if version.IsValid(word) {
			return word
		}
	}
	return ""
}

func checkMake(ctx context.Context, m Machine) Finding {
	const fix = "Install GNU make: `apt-get install make`, `dnf install make`, or on macOS:\n" +
		"xcode-select --install"
	finding := checkTool(ctx, m, "make", fix)
	if finding.Status == OK && !strings.HasPrefix(finding.What, "GNU Make") {
		return Finding{Status: Failure, Fix: fix,
			What: fmt.Sprintf("This make is not GNU make: %s.", finding.What),
			Why:  "The Makefiles are written for GNU make; others do not read them."}
	}
	return finding
}

func checkGit(ctx context.Context, m Machine) Finding {
	return checkTool(ctx, m, "git",
		"Install git: `apt-get install git`, `dnf install git`, or on macOS:\nxcode-select --install")
}

func checkBash(ctx context.Context, m Machine) Finding {
	return checkTool(ctx, m, "bash",
		"Install bash: `apt-get install bash`, `apk add bash` or `brew install bash`.")
}

// checkTool runs the program: on macOS without its command line tools, git and make are found, but
// only print how to install them.
func checkTool(ctx context.Context, m Machine, name, fix string) Finding {
	path, err := m.LookPath(name)
	if err != nil {
		return Finding{Status: Failure, Why: toolWhy, Fix: fix,
			What: fmt.Sprintf("There is no %s in PATH.", name)}
	}
	answer, err := m.Run(ctx, name, "--version")
	if err != nil {
		return Finding{Status: Failure, Why: toolWhy, Fix: fix,
			What: fmt.Sprintf("%s does not work: %s.", path, oneLine(err.Error()))}
	}
	first, _, _ := strings.Cut(strings.TrimSpace(answer), "\n")
	return okay("%s (%s)", first, path)
}

const dockerWhy = "The kind environment runs in Docker: make kind-up, make kind-test and each chapter's kind.sh. " +
	"Everything else works without."

func checkDocker(ctx context.Context, m Machine) Finding {
	path, err := m.LookPath("docker")
	if err != nil {
		return notApplicable("not found: only the kind environment needs it (make kind-up, kind-test); " +
			"everything else works without")
	}
	answer, err := m.Run(ctx, "docker", "info", "--format", "{{.ServerVersion}}")
	server := strings.TrimSpace(answer)
	// Some versions exit 0 when only the client answers.
	if err != nil || server == "" {
		reason := "no server version"
		if err != nil {
			reason = oneLine(err.Error())
		}
		return Finding{Status: Warning, Why: dockerWhy,
			What: fmt.Sprintf("%s is there, but its daemon does not answer: %s.", path, reason),
			Fix: "Start Docker (Docker Desktop, or `sudo systemctl start docker`); on Linux your user " +
				"must be in the group docker. Then see that this answers:\ndocker info"}
	}
	return okay("server %s (%s)", server, path)
}

// oneLine makes foreign output fit into a sentence.
func oneLine(text string) string {
	return strings.TrimRight(strings.Join(strings.Fields(text), " "), ".")
}
