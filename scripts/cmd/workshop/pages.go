package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"sigs.k8s.io/yaml"

	"example.com/operator-workshop/scripts/examine/process"
	"example.com/operator-workshop/scripts/examine/strictyaml"
	"example.com/operator-workshop/scripts/internal/chapter"
	"example.com/operator-workshop/scripts/internal/page"
	"example.com/operator-workshop/scripts/internal/teaching"
	"example.com/operator-workshop/scripts/internal/tools"
	"example.com/operator-workshop/scripts/internal/translation"
)

func pageCommand() *cobra.Command {
	var ch, language string
	var pause bool
	cmd := newCommand("page", "Play a chapter's page on the local cluster", cobra.NoArgs,
		func(cmd *cobra.Command, w workshop, _ []string) error {
			if ch == "" {
				return errors.New("which page? Say for example `make page CH=01`")
			}
			path, err := w.chapterPage(ch, language)
			if err != nil {
				return err
			}
			return w.play(cmd, path, "", pause)
		})
	cmd.Flags().StringVar(&ch, "ch", "", "the chapter")
	cmd.Flags().StringVar(&language, "language", "", "zh-TW, ja or ko (default: English)")
	cmd.Flags().BoolVar(&pause, "pause", false, pauseUsage)
	return cmd
}

// chapterPage returns the path of a chapter's page in a language, in English when that is "".
func (w workshop) chapterPage(ch, language string) (string, error) {
	dir, err := chapter.Page(w.root, ch)
	if err != nil || language == "" {
		return filepath.Join(w.root, dir, "README.md"), err
	}
	if err := w.checkLanguage(language); err != nil {
		return "", err
	}
	path := filepath.Join(w.root, page.Translations, language, dir, "README.md")
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("the page of %s is not in the language %q: leave LANGUAGE out for the English page", dir, language)
	}
	return path, nil
}

// checkLanguage returns an error unless the workshop has texts in a language.
func (w workshop) checkLanguage(language string) error {
	languages, err := translation.Languages(w.root)
	if err == nil && !slices.Contains(languages, language) {
		err = fmt.Errorf("there is no language %q (languages: %s): leave LANGUAGE out for English", language,
			strings.Join(languages, ", "))
	}
	return err
}

// pagesCommand is for the author of a page: it does with one page what `make verify` does with all pages.
func pagesCommand() *cobra.Command {
	return newCommand("pages FILE...", "Check pages, each on a separate cluster", cobra.MinimumNArgs(1),
		func(cmd *cobra.Command, w workshop, files []string) (err error) {
			for i := range files {
				if files[i], err = filepath.Abs(files[i]); err != nil {
					return err
				}
			}
			return w.checkPages(cmd.Context(), os.Stdout, files)
		})
}

const pauseUsage = "wait for Enter before each command"

// enter returns a function that waits until the reader presses Enter. When the input in has ended, the function does
// not wait.
func enter(in io.Reader, out io.Writer) func(ctx context.Context) error {
	lines := bufio.NewReader(in)
	return func(ctx context.Context) error {
		fmt.Fprint(out, "[Enter] ")
		pressed := make(chan struct{})
		go func() {
			_, _ = lines.ReadString('\n')
			close(pressed)
		}()
		select {
		case <-pressed:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// pageEnv is the environment of a page's commands: the terminal of a reader who ran `make shell`.
func (w workshop) pageEnv() []string {
	env := append(w.chapterEnv(), w.terminal()...)
	return append(env, "WORKSHOP_STATE="+w.state)
}

// bringUp starts the local cluster, or its missing parts, with these CRDs.
func (w workshop) bringUp(ctx context.Context, crds ...string) error {
	if err := w.builder().Ensure(ctx, tools.Local...); err != nil {
		return err
	}
	if err := w.ensureLens(ctx); err != nil {
		return err
	}
	return w.cluster().Up(ctx, crds...)
}

// play shows a page, up to a heading, on the reader's own cluster.
func (w workshop) play(cmd *cobra.Command, path, until string, pause bool) error {
	p, err := page.Parse(path)
	if err != nil {
		return err
	}
	if err := w.bringUp(cmd.Context()); err != nil {
		return err
	}
	if err := w.builder().Warm(cmd.Context(), filepath.Dir(page.English(path))); err != nil {
		return err
	}
	color := term.IsTerminal(int(os.Stdout.Fd())) && os.Getenv("NO_COLOR") == ""
	runner := page.Runner{Env: w.pageEnv(), Play: true, Color: color, W: os.Stdout}
	if pause {
		runner.Pause = enter(os.Stdin, os.Stdout)
	}
	_, err = runner.Run(cmd.Context(), p.Until(until))
	if cmd.Context().Err() != nil {
		fmt.Fprintln(os.Stderr, "\nThe cluster keeps running: start over, or `make down` removes it.")
	}
	return err
}

// checkPages runs each page on a separate cluster and prints how it treated the blocks. It continues after a page that
// fails, and fails when a page executes fewer blocks than recorded.
func (w workshop) checkPages(ctx context.Context, out io.Writer, paths []string) error {
	recorded, err := w.recordedBlocks()
	if err != nil {
		return err
	}
	var sum page.Counts
	var failed []error
	for _, path := range paths {
		name, err := filepath.Rel(w.root, path)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s\n", name)
		start := time.Now()
		counts, err := w.checkPage(ctx, out, path)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		sum = sum.Add(counts)
		if err == nil {
			english, _ := filepath.Rel(w.root, page.English(path))
			err = notFewer(english, counts.Executed, recorded)
		}
		if err != nil {
			fmt.Fprintf(out, "  FAILED: %v\n", err)
			failed = append(failed, fmt.Errorf("page %s failed", name))
			continue
		}
		fmt.Fprintf(out, "  ok, %s (%.0f s)\n", counts, time.Since(start).Seconds())
	}
	fmt.Fprintf(out, "%d pages: %s\n", len(paths), sum)
	return errors.Join(failed...)
}

// onlinePages are the folders whose pages need a network: kubebuilder asks for the modules of a new project, and the
// recipe for CI takes the module of another project.
var onlinePages = []string{"05-operator-sdk", "scripts/examine/ci"}

// pageSteps returns the steps that check all pages: one for each folder, in its own network namespace, because programs
// of different pages may listen on the same port. Where no namespace can be made, there is one step.
func (w workshop) pageSteps(ctx context.Context, paths []string) (steps []step) {
	offline := filepath.Join(w.root, "scripts", "offline.sh")
	if exec.CommandContext(ctx, offline, "true").Run() != nil {
		return []step{w.pageStep(paths)}
	}
	for _, group := range groupPages(w.root, paths) {
		args := append([]string{offline, filepath.Join(w.bin(), "workshop"), "pages"}, group.paths...)
		if slices.Contains(onlinePages, group.folder) {
			args = args[1:]
		}
		steps = append(steps, step{"pages of " + group.folder, func(ctx context.Context, out io.Writer) error {
			return foreground(process.Command(ctx, cleanUp, args[0], args[1:]...), out)
		}})
	}
	return steps
}

// pageStep is a step that checks pages one after the other.
func (w workshop) pageStep(paths []string) step {
	return step{"pages", func(ctx context.Context, out io.Writer) error { return w.checkPages(ctx, out, paths) }}
}

// A pageGroup is the pages below one folder of the repository.
type pageGroup struct {
	folder string
	paths  []string
}

// groupPages groups pages by folder. The groups that take longest come first, so that no core is idle at the end.
func groupPages(root string, paths []string) (groups []pageGroup) {
	by := map[string][]string{}
	for _, path := range paths {
		name := strings.TrimPrefix(path, root+"/")
		folder, _, below := strings.Cut(name, "/")
		if online := filepath.Dir(name); slices.Contains(onlinePages, online) {
			folder = online
		} else if !below {
			folder = "."
		}
		by[folder] = append(by[folder], path)
	}
	for _, folder := range slices.Sorted(maps.Keys(by)) {
		groups = append(groups, pageGroup{folder, by[folder]})
	}
	slices.SortStableFunc(groups, func(a, b pageGroup) int { return len(b.paths) - len(a.paths) })
	return groups
}

// notFewer returns an error when a page executes fewer blocks than scripts/blocks.yaml records.
func notFewer(name string, executed int, recorded map[string]int) error {
	before, known := recorded[name]
	if !known {
		return fmt.Errorf("%s is not in scripts/blocks.yaml: `make sync` records it", name)
	}
	if executed < before {
		return fmt.Errorf("%s executed %d blocks, scripts/blocks.yaml records %d: "+
			"a page must not lose blocks unseen (if it is meant, run `make sync`)", name, executed, before)
	}
	return nil
}

func (w workshop) checkPage(ctx context.Context, out io.Writer, path string) (counts page.Counts, err error) {
	p, err := page.Parse(path)
	if err != nil {
		return counts, err
	}
	if filepath.Base(path) == teaching.SlidesFile {
		if err := teaching.CheckSlides(p); err != nil {
			return counts, err
		}
	}
	tmp, err := os.MkdirTemp("", "workshop-page-")
	if err != nil {
		return counts, err
	}
	own := workshop{root: w.root, state: filepath.Join(tmp, ".workshop")}
	defer func() {
		err = errors.Join(err, own.cluster().Down(context.WithoutCancel(ctx)), os.RemoveAll(tmp))
	}()
	return page.Runner{Env: own.pageEnv(), W: out}.Run(ctx, p)
}

func (w workshop) blocksFile() string { return filepath.Join(w.root, "scripts", "blocks.yaml") }

// recordedBlocks returns the recorded number of blocks that each page executes.
func (w workshop) recordedBlocks() (map[string]int, error) {
	recorded := map[string]int{}
	return recorded, strictyaml.Read(w.blocksFile(), &recorded)
}

// recordBlocks records how many blocks each page executes.
func (w workshop) recordBlocks() error {
	paths, err := page.Find(w.root)
	if err != nil {
		return err
	}
	recorded := map[string]int{}
	for _, path := range paths {
		p, err := page.Parse(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(w.root, path)
		if err != nil {
			return err
		}
		recorded[name] = page.Plan(p).Executed
	}
	data, err := yaml.Marshal(recorded)
	if err != nil {
		return err
	}
	return os.WriteFile(w.blocksFile(), append([]byte("# Blocks that each page executes. Written by `make sync`.\n"), data...), 0o644)
}
