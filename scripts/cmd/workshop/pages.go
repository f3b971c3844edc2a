package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"sigs.k8s.io/yaml"

	"example.com/operator-workshop/scripts/internal/chapter"
	"example.com/operator-workshop/scripts/internal/page"
	"example.com/operator-workshop/scripts/internal/tools"
)

func pageCommand() *cobra.Command {
	var ch string
	cmd := &cobra.Command{
		Use:   "page",
		Short: "Play a chapter's page on the local cluster",
		Args:  cobra.NoArgs,
		RunE: run(func(cmd *cobra.Command, w workshop, _ []string) error {
			if ch == "" {
				return errors.New("which page? Say for example `make page CH=01`")
			}
			dir, err := chapter.Page(w.root, ch)
			if err != nil {
				return err
			}
			return w.play(cmd, filepath.Join(w.root, dir, "README.md"), "")
		}),
	}
	cmd.Flags().StringVar(&ch, "ch", "", "the chapter")
	return cmd
}

// pagesCommand is for who writes a page: what `make verify` does with all of them.
func pagesCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "pages FILE...",
		Short: "Check pages, each on a cluster of its own",
		Args:  cobra.MinimumNArgs(1),
		RunE: run(func(cmd *cobra.Command, w workshop, files []string) (err error) {
			for i := range files {
				if files[i], err = filepath.Abs(files[i]); err != nil {
					return err
				}
			}
			return w.checkPages(cmd.Context(), files)
		}),
	}
}

// demoCommand plays the page of a chapter that installs its CRD. The cluster gets the CRD before its
// controllers start: the garbage collector looks for new kinds every 30 s only, and the story ends with
// a deletion that should not have to wait for it.
func demoCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "demo CHAPTER",
		Short: "Bring the cluster up, play a chapter's page, say where to go next",
		Args:  cobra.ExactArgs(1),
		RunE: run(func(cmd *cobra.Command, w workshop, args []string) error {
			start := time.Now()
			crds, err := filepath.Glob(filepath.Join(w.root, args[0], "config", "crd", "*.yaml"))
			if err != nil {
				return err
			}
			if err := w.play(cmd, filepath.Join(w.root, args[0], "README.md"), "What happened", crds...); err != nil {
				return err
			}
			fmt.Printf(demoEnd, time.Since(start).Seconds())
			return nil
		}),
	}
}

const demoEnd = `
That was an operator, in %.0f s, on a cluster that runs on your machine without Docker.

Where to go next
  make shell        a shell whose kubectl talks to this cluster
  00-env/README.md  what the cluster is made of; then 01-crd, and so on
  make page CH=01   a chapter's page, played like this one
  make down         removes the cluster
`

// pageEnv is the environment of a page's commands: the terminal of a reader who ran `make shell`.
func (w workshop) pageEnv() []string {
	env := append(w.chapterEnv(), w.terminal()...)
	return append(env, "WORKSHOP_STATE="+w.state)
}

// play shows a page, up to a heading, on the reader's own cluster.
func (w workshop) play(cmd *cobra.Command, path, until string, crds ...string) error {
	p, err := page.Parse(path)
	if err != nil {
		return err
	}
	if err := w.tools(cmd, tools.Local); err != nil {
		return err
	}
	if err := w.cluster().Up(cmd.Context(), crds...); err != nil {
		return err
	}
	if err := w.builder().Warm(cmd.Context(), filepath.Dir(path)); err != nil {
		return err
	}
	color := term.IsTerminal(int(os.Stdout.Fd())) && os.Getenv("NO_COLOR") == ""
	runner := page.Runner{Env: w.pageEnv(), Lane: "local", Play: true, Color: color, W: os.Stdout}
	_, err = runner.Run(cmd.Context(), p.Until(until))
	if cmd.Context().Err() != nil {
		fmt.Fprintln(os.Stderr, "\nThe cluster keeps running: start over, or `make down` removes it.")
	}
	return err
}

// checkPages runs each page on a cluster of its own and prints what was done with its blocks. It
// goes on after a page that fails, and fails when a page executes fewer blocks than recorded.
func (w workshop) checkPages(ctx context.Context, paths []string) error {
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
		fmt.Printf("%s\n", name)
		start := time.Now()
		counts, err := w.checkPage(ctx, path)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		sum = sum.Add(counts)
		if err == nil {
			err = notFewer(name, counts.Executed, recorded)
		}
		if err != nil {
			fmt.Printf("  FAILED: %v\n", err)
			failed = append(failed, fmt.Errorf("page %s failed", name))
			continue
		}
		fmt.Printf("  ok, %s (%.0f s)\n", counts, time.Since(start).Seconds())
	}
	fmt.Printf("%d pages: %s\n", len(paths), sum)
	return errors.Join(failed...)
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

func (w workshop) checkPage(ctx context.Context, path string) (counts page.Counts, err error) {
	p, err := page.Parse(path)
	if err != nil {
		return counts, err
	}
	tmp, err := os.MkdirTemp("", "workshop-page-")
	if err != nil {
		return counts, err
	}
	own := workshop{root: w.root, state: filepath.Join(tmp, ".workshop")}
	defer func() {
		err = errors.Join(err, own.cluster().Down(context.WithoutCancel(ctx)), os.RemoveAll(tmp))
	}()
	return page.Runner{Env: own.pageEnv(), Lane: "local", W: os.Stdout}.Run(ctx, p)
}

func (w workshop) blocksFile() string { return filepath.Join(w.root, "scripts", "blocks.yaml") }

// recordedBlocks says how many blocks each page executed when this was last recorded.
func (w workshop) recordedBlocks() (map[string]int, error) {
	data, err := os.ReadFile(w.blocksFile())
	if err != nil {
		return nil, err
	}
	recorded := map[string]int{}
	return recorded, yaml.UnmarshalStrict(data, &recorded)
}

// recordBlocks writes down how many blocks each page executes on the local lane.
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
		recorded[name] = page.Plan(p, "local").Executed
	}
	data, err := yaml.Marshal(recorded)
	if err != nil {
		return err
	}
	return os.WriteFile(w.blocksFile(), append([]byte("# Blocks that each page executes on the local lane. Written by `make sync`.\n"), data...), 0o644)
}
