package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"example.com/operator-workshop/scripts/examine/process"
	"example.com/operator-workshop/scripts/internal/chapter"
	"example.com/operator-workshop/scripts/internal/page"
)

// The linters are programs of two separate modules: their dependencies clash with Kubernetes and with each other.
const (
	lintModule = "scripts/linters"
	textModule = "scripts/linters/text"
	goLinter   = "golangci-lint"
	actionlint = "actionlint"
	vale       = "vale"
)

func lintCommand() *cobra.Command {
	return chapterCommand("lint", "Run the linters", func(ctx context.Context, w workshop, dirs []string) error {
		all, err := chapter.All(w.root)
		if err != nil {
			return err
		}
		return runSteps(ctx, w.lint(dirs, len(dirs) == len(all), w.lintProse))
	})
}

// lint returns the steps that run the linters, in the given chapters or in the whole repository. words is lintProse or
// advise.
func (w workshop) lint(dirs []string, everything bool, words func(dirs []string) step) []step {
	if !everything {
		return []step{w.lintGo(dirs), words(dirs)}
	}
	return []step{w.lintGo([]string{"."}), words([]string{"."}), {"workflows", w.lintWorkflows},
		{"scripts of the window", w.lintWindow}}
}

// advise is lintProse that never fails: a contributor's change does not fail on a word.
func (w workshop) advise(dirs []string) step {
	strict := w.lintProse(dirs)
	return step{strict.name, func(ctx context.Context, out io.Writer) error {
		if err := strict.run(ctx, out); err != nil {
			fmt.Fprintf(out, "note: `make lint` fails because of these words (%v); `make verify` does not\n", err)
		}
		return ctx.Err()
	}}
}

// lintGo runs the linters of .golangci.yaml on the modules in the given folders, in a workspace of these modules, so
// that packages which several modules share are examined once. A workspace takes the newest version of each dependency
// that one of its modules asks for. The linters' own module asks for versions that no other module is compiled with,
// and is examined alone.
func (w workshop) lintGo(dirs []string) step {
	return step{"linters", func(ctx context.Context, out io.Writer) error {
		if err := w.builder().Program(ctx, filepath.Join(w.root, lintModule), ".", goLinter); err != nil {
			return err
		}
		modules, err := chapter.Modules(w.root)
		if err != nil {
			return err
		}
		// Not beside the files of the local cluster, which `make down` removes: the first run takes long.
		dir := filepath.Join(w.bin(), ".golangci-lint")
		cache, work := cmp.Or(os.Getenv("GOLANGCI_LINT_CACHE"), dir), filepath.Join(dir, "go.work")
		if err := errors.Join(os.MkdirAll(dir, 0o755), os.RemoveAll(work)); err != nil {
			return err
		}
		run := func(dir, work, program string, args ...string) error {
			cmd := w.program(ctx, program, args...)
			cmd.Dir, cmd.Env = filepath.Join(w.root, dir), append(cmd.Env, "GOWORK="+work, "GOLANGCI_LINT_CACHE="+cache)
			return foreground(cmd, out)
		}
		lint := func(dir, work string, packages ...string) error {
			return run(dir, work, filepath.Join(w.bin(), goLinter), append([]string{"run", "--allow-parallel-runners",
				"--config", filepath.Join(w.root, ".golangci.yaml")}, packages...)...)
		}
		use, packages := []string{"work", "init"}, []string(nil)
		for _, module := range modules {
			switch {
			case !chapter.Within(dirs, module) || !hasCode(filepath.Join(w.root, module)):
			case module == lintModule:
				err = errors.Join(err, lint(module, "off", "./..."))
			default:
				use, packages = append(use, filepath.Join(w.root, module)), append(packages, "./"+module+"/...")
			}
		}
		if packages == nil {
			return err
		}
		return errors.Join(err, run(".", work, "go", use...), lint(".", work, packages...))
	}}
}

// hasCode reports whether there is Go code in a folder. A module that only pins tools has none.
func hasCode(dir string) (found bool) {
	_ = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if found = filepath.Ext(path) == ".go"; found {
			return fs.SkipAll
		}
		return err
	})
	return found
}

// lintProse checks the pages and the comments below the given folders against our vocabulary.
func (w workshop) lintProse(dirs []string) step {
	return step{"words", func(ctx context.Context, out io.Writer) error {
		if _, err := exec.LookPath("cc"); err != nil {
			fmt.Fprintln(out, "  skipped: there is no C compiler, and Vale is built with one")
			return nil
		}
		builder := w.builder()
		builder.Env = append(builder.Env, "CGO_ENABLED=1")
		if err := builder.Program(ctx, filepath.Join(w.root, textModule), "github.com/vale-cli/vale/v3/cmd/vale",
			vale); err != nil {
			return err
		}
		files := slices.DeleteFunc(w.tracked(ctx, out, "*.md", "*.go"), func(file string) bool {
			return strings.Contains(file, "zz_generated") || strings.Contains(file, "/generated/") ||
				strings.Contains(file, "/testdata/") || strings.HasPrefix(file, page.Translations+"/") || !chapter.Within(dirs, file)
		})
		if len(files) == 0 {
			return nil
		}
		config := filepath.Join(w.root, lintModule, "terms", "vale.ini")
		return foreground(w.program(ctx, filepath.Join(w.bin(), vale),
			append([]string{"--config", config, "--output=line"}, files...)...), out)
	}}
}

// lintWorkflows runs actionlint, which knows the workflows of GitHub.
func (w workshop) lintWorkflows(ctx context.Context, out io.Writer) error {
	err := w.builder().Program(ctx, filepath.Join(w.root, textModule),
		"github.com/rhysd/actionlint/cmd/actionlint", actionlint)
	if err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(w.root, ".github", "workflows", "*.yaml"))
	if err != nil {
		return err
	}
	return w.run(ctx, out, "", filepath.Join(w.bin(), actionlint), files...)
}

// shellcheck runs where it is installed; CI installs it.
func (w workshop) shellcheck(ctx context.Context, out io.Writer) error {
	if _, err := exec.LookPath("shellcheck"); err != nil {
		fmt.Fprintln(out, "  skipped: shellcheck is not installed")
		return nil
	}
	files := w.tracked(ctx, out, "*.sh", "scripts/workshop", ".ci/run")
	if len(files) == 0 {
		return nil
	}
	return w.run(ctx, out, "", "shellcheck", append([]string{"-x", "-P", "SCRIPTDIR"}, files...)...)
}

// tracked returns the files that git tracks or would track here, and none outside a git repository.
func (w workshop) tracked(ctx context.Context, out io.Writer, patterns ...string) []string {
	args := append([]string{"-C", w.root, "ls-files", "--cached", "--others", "--exclude-standard", "--"}, patterns...)
	files, err := exec.CommandContext(ctx, "git", args...).Output()
	if err != nil {
		fmt.Fprintln(out, "  skipped: git does not know this folder, and so not its files")
	}
	return slices.DeleteFunc(strings.Fields(string(files)), func(file string) bool {
		_, err := os.Stat(filepath.Join(w.root, file))
		return err != nil
	})
}

// program returns a command that runs in the root of the repository.
func (w workshop) program(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := process.Command(ctx, cleanUp, name, args...)
	cmd.Dir, cmd.Env = w.root, w.chapterEnv()
	return cmd
}
