package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"example.com/operator-workshop/scripts/internal/chapter"
	"example.com/operator-workshop/scripts/internal/doctor"
	"example.com/operator-workshop/scripts/internal/page"
	"example.com/operator-workshop/scripts/internal/tools"
)

func doctorCommand() *cobra.Command {
	var brief bool
	cmd := newCommand("doctor", "Look for what may go wrong on this machine", cobra.NoArgs,
		func(cmd *cobra.Command, w workshop, _ []string) error {
			machine := doctor.Local(w.root)
			findings := doctor.Run(cmd.Context(), machine)
			if err := cmd.Context().Err(); err != nil { // Ctrl-C, and not a fault of the machine
				return err
			}
			if brief { // the line has the result; for a failure, make would add another line
				fmt.Println(doctor.Brief(cmd.Context(), machine, findings))
				return nil
			}
			color := term.IsTerminal(int(os.Stdout.Fd())) && os.Getenv("NO_COLOR") == ""
			if err := doctor.Print(os.Stdout, findings, color); err != nil {
				return err
			}
			if doctor.Worst(findings) == doctor.Failure {
				return errors.New("the workshop will not work here until the failed checks are fixed")
			}
			return nil
		})
	cmd.Flags().BoolVar(&brief, "brief", false, "one line, to paste")
	return cmd
}

func testCommand() *cobra.Command {
	return chapterCommand("test", "Run the tests of chapters", func(ctx context.Context, w workshop, dirs []string) error {
		if err := w.builder().Ensure(ctx, tools.Local...); err != nil {
			return err
		}
		if err := w.warm(ctx, dirs); err != nil {
			return err
		}
		var steps []step
		flags := "GOFLAGS=-mod=readonly -trimpath " + strings.Join(testFlags, " ")
		for _, dir := range longestFirst(dirs) {
			steps = append(steps, w.makeStep("tests of "+dir, dir, "test", flags))
		}
		return runSteps(ctx, steps)
	})
}

// longestFirst puts the chapters whose tests take longest at the beginning, so that no core is idle at the end.
func longestFirst(dirs []string) []string {
	takesLong := func(dir string) bool {
		return dir == "05-operator-sdk/databasebackup-operator" || dir == "06-deploy"
	}
	return slices.Concat(slices.DeleteFunc(slices.Clone(dirs), func(dir string) bool { return !takesLong(dir) }),
		slices.DeleteFunc(slices.Clone(dirs), takesLong))
}

// testFlags make `go test` faster: vet, which also examines all dependencies, is one of the linters of make verify; and
// linking without debug information takes a third less time.
var testFlags = []string{"-vet=off", "-ldflags=-w"}

func kindTestCommand() *cobra.Command {
	const short = "Run the end-to-end tests of chapters on kind"
	return selectCommand("kind-test", short, chapter.SelectKind, func(ctx context.Context, w workshop, dirs []string) error {
		if err := w.run(ctx, os.Stdout, "", filepath.Join(w.root, "scripts", "kind-test.sh"), dirs...); err != nil {
			return errors.Join(errSaid, err) // the script has printed the difference
		}
		return nil
	})
}

// labCommand builds the lab and replaces this process by it. The lab is a separate program because it is linked from
// many packages.
func labCommand() *cobra.Command {
	cmd := newCommand("lab", "Examine MyWeb operators", cobra.ArbitraryArgs,
		func(cmd *cobra.Command, w workshop, args []string) error {
			if err := w.lab(cmd.Context()); err != nil {
				return err
			}
			if err := os.Chdir(w.root); err != nil {
				return err
			}
			return syscall.Exec(filepath.Join(w.bin(), "lab"), append([]string{"lab"}, args...), tools.Env())
		})
	cmd.DisableFlagParsing = true // the lab parses its flags itself
	return cmd
}

// examineCommand builds examine and replaces this process by it, with the programs of bin/. Its paths are relative to
// the folder of its caller.
func examineCommand() *cobra.Command {
	cmd := newCommand("examine", "Examine any operator", cobra.ArbitraryArgs,
		func(cmd *cobra.Command, w workshop, args []string) error {
			if err := w.builder().Ensure(cmd.Context(), tools.Local...); err != nil {
				return err
			}
			if err := w.compile(cmd.Context(), examineModule, "./cmd/examine", "examine", examineModule); err != nil {
				return err
			}
			env := append(tools.Env(), "KUBEBUILDER_ASSETS="+w.bin())
			return syscall.Exec(filepath.Join(w.bin(), "examine"), append([]string{"examine", "run"}, args...), env)
		})
	cmd.DisableFlagParsing = true // examine parses its flags itself
	return cmd
}

// The lab and examine are separate products. The lab is built on examine, which needs nothing of the workshop.
const (
	labModule     = "scripts/lab"
	examineModule = "scripts/examine"
)

// chaptersCommand prints the list of jobs for CI.
func chaptersCommand() *cobra.Command {
	return newCommand("chapters", "Print the chapters as a JSON list", cobra.NoArgs,
		func(_ *cobra.Command, w workshop, _ []string) error {
			all, err := chapter.All(w.root)
			if err != nil {
				return err
			}
			return json.NewEncoder(os.Stdout).Encode(all)
		})
}

func syncCommand() *cobra.Command {
	return newCommand("sync", "Distribute what chapters share, record what pages execute", cobra.NoArgs,
		func(_ *cobra.Command, w workshop, _ []string) error {
			written, err := chapter.Sync(w.root)
			if err != nil {
				return err
			}
			for _, path := range written {
				fmt.Println("copied to", path)
			}
			if err := w.writeTranslations(); err != nil {
				return err
			}
			return w.recordBlocks()
		})
}

func verifyCommand() *cobra.Command {
	var onePage string
	cmd := chapterCommand("verify", "Check everything that must be true", func(ctx context.Context, w workshop, dirs []string) error {
		if onePage != "" {
			return w.verifyPage(ctx, onePage)
		}
		all, err := chapter.All(w.root)
		if err != nil {
			return err
		}
		if err := w.builder().Ensure(ctx, append(slices.Clone(tools.Local), tools.Generators...)...); err != nil {
			return err
		}
		if err := w.warm(ctx, dirs); err != nil {
			return err
		}
		whole := len(dirs) == len(all)
		var steps []step
		if whole { // not narrowed to a chapter: also the machinery, whose tests take longest
			for _, module := range modules {
				if err := w.builder().Warm(ctx, filepath.Join(w.root, module)); err != nil {
					return err
				}
			}
			steps = w.machinery()
		}
		steps = append(steps, []step{
			{"versions", func(context.Context, io.Writer) error { return chapter.CheckVersions(w.root) }},
			{"shared dependencies", func(ctx context.Context, _ io.Writer) error {
				return chapter.CheckShared(ctx, w.root)
			}},
			{"copies", func(context.Context, io.Writer) error { return chapter.CheckCopies(w.root) }},
			{"age of the results on kind", w.resultsAge},
			w.names(),
			w.freshTranslations(),
		}...)
		steps = append(steps, w.lint(dirs, whole, w.advise)...)
		for _, dir := range dirs {
			steps = append(steps, w.makeStep("files of "+dir, dir, "verify"))
		}
		paths, err := w.pages(func(dir string) bool { return whole || chapter.Holds(dirs, all, dir) })
		if err != nil {
			return err
		}
		pages := []step{w.pageStep(paths)}
		err = runSteps(ctx, steps)
		if whole { // alone: no other step may load the machine while requests are counted
			err = errors.Join(err, runSteps(ctx, []step{{"request budget", func(ctx context.Context, out io.Writer) error {
				return w.run(ctx, out, "", filepath.Join(w.root, "scripts", "workshop"), "lab", "budget")
			}}}))
			pages = w.pageSteps(ctx, paths)
		}
		return errors.Join(err, runSteps(ctx, pages)) // a page may regenerate files that other steps read
	})
	cmd.Flags().StringVar(&onePage, "page", "", "only this page")
	return cmd
}

// verifyPage is for a contributor who changed one page: its words, the files that it names, its translations, its blocks.
func (w workshop) verifyPage(ctx context.Context, path string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	name, err := filepath.Rel(w.root, path)
	if err != nil {
		return err
	}
	recorded, err := w.recordedBlocks()
	if err != nil {
		return err
	}
	english, _ := filepath.Rel(w.root, page.English(path))
	if _, known := recorded[english]; !known {
		return fmt.Errorf("%s is not in scripts/blocks.yaml, the list of pages: `make sync` records a new page", english)
	}
	return runSteps(ctx, []step{w.advise([]string{name}), w.names(), w.freshTranslations(), w.pageStep([]string{path})})
}

// names is a step that looks for the files that pages and comments name.
func (w workshop) names() step {
	return step{"names of files", func(context.Context, io.Writer) error { return chapter.CheckNames(w.root) }}
}

// warm compiles the packages that the modules of chapters need.
func (w workshop) warm(ctx context.Context, chapters []string) error {
	dirs, err := chapter.ModulesOf(w.root, chapters)
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		if err := w.builder().Warm(ctx, filepath.Join(w.root, dir)); err != nil {
			return err
		}
	}
	return nil
}

// modules are the Go modules of the machinery.
var modules = []string{labModule, examineModule, "scripts", lintModule}

// machinery returns the checks of scripts/ and of all shell scripts.
func (w workshop) machinery() []step {
	var steps []step
	for _, module := range modules {
		steps = append(steps,
			step{"tidy " + module, func(ctx context.Context, out io.Writer) error {
				return w.run(ctx, out, module, "go", "mod", "tidy", "-diff")
			}},
			step{"tests of " + module, func(ctx context.Context, out io.Writer) error {
				// Most packages start clusters, and other steps and the tests on kind run beside: so one package at a time.
				// With cold caches, tests take ten times as long as alone. The package examine takes as long as all others.
				parallel := "-p=1"
				if module == examineModule {
					parallel = "-p=2"
				}
				args := slices.Concat([]string{"test", parallel, "-timeout=60m"}, testFlags, []string{"./..."})
				return w.run(ctx, out, module, "go", args...)
			}})
	}
	return append(steps, step{"shell scripts", w.shellcheck}, step{"without a network", w.offline})
}

// pages returns the pages of the wanted folders.
func (w workshop) pages(wanted func(dir string) bool) (paths []string, err error) {
	all, err := page.Find(w.root)
	for _, path := range all {
		dir, relErr := filepath.Rel(w.root, filepath.Dir(path))
		err = errors.Join(err, relErr)
		if wanted(dir) {
			paths = append(paths, path)
		}
	}
	if wanted("00-env") { // one page of each language
		translated, globErr := filepath.Glob(filepath.Join(w.root, page.Translations, "*", "00-env", "README.md"))
		paths, err = append(paths, translated...), errors.Join(err, globErr)
	}
	return paths, err
}

// offline runs a local cluster and the tests of a chapter on a machine without a network, where the system permits
// network namespaces.
func (w workshop) offline(ctx context.Context, out io.Writer) error {
	script := filepath.Join(w.root, "scripts", "offline.sh")
	if said, err := exec.CommandContext(ctx, script, "true").CombinedOutput(); err != nil {
		fmt.Fprintf(out, "  skipped: no network namespace can be made here: %s (%v)\n", strings.TrimSpace(string(said)), err)
		return nil
	}
	state, err := os.MkdirTemp("", "workshop-offline-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(state)
	// Another shell does not run the trap when a signal ends it.
	cmd := w.program(ctx, script, "bash", "-c", `trap 'make down' EXIT; make up && go -C 01-crd test -count=1 ./...`)
	cmd.Env = append(cmd.Env, "WORKSHOP_STATE="+state)
	return foreground(cmd, out)
}

// chapterEnv returns the environment of a chapter's targets: Go's settings are ours, the pinned programs come first in
// PATH, and the variables that make passed to us are removed.
func (w workshop) chapterEnv() []string {
	env := slices.DeleteFunc(tools.Env(), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return strings.HasPrefix(name, "MAKE") || name == "MFLAGS" || name == "CH" || name == "PATH" ||
			isOfOtherProject(kv)
	})
	env = append(env, "PATH="+w.bin()+":"+os.Getenv("PATH"))
	// Libraries of tests and generators (envtest, goimports) keep files beside Go's build cache, in HOME. These files
	// go to the state folder; Go's build cache stays where it is.
	if cache, err := exec.Command("go", "env", "GOCACHE").Output(); err == nil {
		env = append(env, "GOCACHE="+strings.TrimSpace(string(cache)), "XDG_CACHE_HOME="+w.cluster().KubectlCache())
	}
	return env
}

// chapterCommand makes a command that --ch narrows.
func chapterCommand(name, short string, do func(ctx context.Context, w workshop, dirs []string) error) *cobra.Command {
	return selectCommand(name, short, chapter.Select, do)
}

func selectCommand(name, short string, choose func(root, prefixes string) ([]string, error),
	do func(ctx context.Context, w workshop, dirs []string) error) *cobra.Command {
	var ch string
	cmd := newCommand(name, short, cobra.NoArgs,
		func(cmd *cobra.Command, w workshop, _ []string) error {
			dirs, err := choose(w.root, ch)
			if err != nil {
				return err
			}
			return do(cmd.Context(), w, dirs)
		})
	cmd.Flags().StringVar(&ch, "ch", "", "only this chapter")
	return cmd
}
