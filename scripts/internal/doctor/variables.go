package doctor

import (
	"context"
	"fmt"
	"go/version"
	"os"
	"runtime"
	"strings"
)

// hurts describes the effect of a setting of Go that a reader has made for another project; "" when it has none here.
var hurts = []struct {
	name string
	how  func(value string) string
}{
	{"GOFLAGS", func(value string) string {
		if value == "-mod=readonly" || value == "-mod=readonly -trimpath" { // ours, in a terminal of the workshop
			return ""
		}
		return "each go command gets these flags"
	}},
	{"GOWORK", func(value string) string {
		if value == "off" || value == "auto" {
			return ""
		}
		return "the modules of the workshop are not in this workspace"
	}},
	{"GOBIN", func(string) string { return "`go install` writes there" }},
	{"GOOS", func(value string) string { return forAnother(value, runtime.GOOS) }},
	{"GOARCH", func(value string) string { return forAnother(value, runtime.GOARCH) }},
	{"GOTOOLCHAIN", func(value string) string {
		if !version.IsValid(value) || version.Compare(value, minimumGo) >= 0 { // local, auto, and go1.25+auto
			return ""
		}
		return "go.mod asks for Go 1.26"
	}},
}

func forAnother(value, here string) string {
	if value == here {
		return ""
	}
	return "programs are built for another machine: Exec format error"
}

// checkVariables also finds settings of `go env -w`, which no terminal shows.
func checkVariables(ctx context.Context, m Machine) Finding {
	var found, unset, written []string
	for _, setting := range hurts {
		value, typed := os.Getenv(setting.name), true
		if value == "" {
			value, typed = m.written(ctx, setting.name), false
		}
		if value == "" {
			continue
		}
		how := setting.how(value)
		if how == "" {
			continue
		}
		found = append(found, fmt.Sprintf("%s=%s (%s)", setting.name, value, how))
		if typed {
			unset = append(unset, setting.name)
		} else {
			written = append(written, setting.name)
		}
	}
	if len(found) == 0 {
		return okay("no setting of Go for another project")
	}
	fix := "The targets of make are not affected. For your own commands, run"
	if len(unset) > 0 {
		fix += "\nunset " + strings.Join(unset, " ")
	}
	if len(written) > 0 {
		fix += "\ngo env -u " + strings.Join(written, " ")
	}
	return Finding{Status: Warning, What: strings.Join(found, "; ") + ".",
		Why: "A `go build` or `go run` that you type from a page fails, or its program does not start.",
		Fix: fix + "\nor, in a terminal for the pages:\neval \"$(scripts/workshop env)\""}
}

// written returns a setting of `go env -w`.
func (m Machine) written(ctx context.Context, name string) string {
	path, err := m.run(ctx, "go", "env", "GOENV")
	if err != nil {
		return ""
	}
	settings, _ := os.ReadFile(strings.TrimSpace(path))
	for line := range strings.Lines(string(settings)) {
		if is, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && is == name {
			return value
		}
	}
	return ""
}
