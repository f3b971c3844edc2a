package page

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"example.com/operator-workshop/scripts/examine/output"
)

// A Runner runs pages.
type Runner struct {
	// Env holds the variables of every block, as in os.Environ.
	Env []string
	// Play shows prose, commands and their output to a reader. Otherwise only results are printed.
	Play bool
	// Pause is called before each command that Play shows. It returns when the reader wants the command to run.
	Pause func(ctx context.Context) error
	// Color allows terminal colours.
	Color bool
	// W receives the output.
	W io.Writer
}

// Counts has the number of blocks of a page for each way of treatment.
type Counts struct{ Executed, Compared, Included, Skipped int }

// Add returns the sums.
func (c Counts) Add(d Counts) Counts {
	return Counts{c.Executed + d.Executed, c.Compared + d.Compared, c.Included + d.Included, c.Skipped + d.Skipped}
}

func (c Counts) String() string {
	return fmt.Sprintf("%d executed, %d compared, %d included, %d skipped", c.Executed, c.Compared, c.Included, c.Skipped)
}

// Plan counts how the blocks of a page would be treated, without running them.
func Plan(p *Page) (c Counts) {
	for _, part := range p.Parts {
		switch b := part.Block; {
		case b == nil:
		case b.Skip != "":
			c.Skipped++
		case b.Lang == "sh":
			c.Executed++
		case b.Lang == "console":
			c.Compared++
		default:
			c.Included++
		}
	}
	return c
}

// Run runs a page to its end or to the first block whose result differs from the page. The error names page, line and
// command, and shows the expected and the actual output.
func (r Runner) Run(ctx context.Context, p *Page) (c Counts, err error) {
	path, err := filepath.Abs(p.Path)
	if err != nil {
		return c, err
	}
	dir := filepath.Dir(English(path)) // a translation has the blocks of the English page
	s, err := newSession(dir, r.Env, r.W)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	skippedConsole := map[*Block]string{}
	for _, part := range p.Parts {
		b := part.Block
		if b == nil {
			r.prose(part)
			continue
		}
		reason := cmp.Or(b.Skip, skippedConsole[b])
		if reason != "" {
			if b.Expected != nil {
				skippedConsole[b.Expected] = reason
			}
			c.Skipped++
			r.skip(p, b, reason)
			continue
		}
		if err := r.block(ctx, s, dir, b, &c); err != nil {
			return c, fmt.Errorf("%s:%d: %w", p.Path, b.Line, err)
		}
	}
	return c, nil
}

// block treats a block as its words require.
func (r Runner) block(ctx context.Context, s *session, dir string, b *Block, c *Counts) error {
	switch b.Lang {
	case "console": // compared together with the sh block before it
		c.Compared++
		return nil
	case "sh":
		c.Executed++
		r.command(b)
		if r.Pause != nil {
			if err := r.Pause(ctx); err != nil {
				return err
			}
		}
		defer func() { r.output(s.printed()) }()
		if b.Background != "" {
			return s.background(ctx, b)
		}
		if err := r.poll(ctx, s, b); err != nil {
			return err
		}
		if b.Stop != "" {
			j := s.jobs[b.Stop]
			err := s.stop(ctx, b.Stop)
			r.output(j.printed())
			return err
		}
		return nil
	default:
		c.Included++
		r.show(b)
		return checkInclude(dir, b)
	}
}

// leastTries is the smallest number of tries without progress: on a busy machine each takes long.
const leastTries = 30

// A Repeat reports how long a sh block is repeated. The block makes progress while its output changes.
type Repeat struct {
	wait   *wait
	block  *Block
	before string
	tries  int
}

// NewRepeat begins the time of a block that is about to run for the first time.
func NewRepeat(w io.Writer, b *Block) *Repeat {
	return &Repeat{wait: newWait(w, b.Within, ""), block: b}
}

// Again reports whether a block whose output does not match its page is repeated.
func (r *Repeat) Again(output string) bool {
	now := strings.Join(normalise(output), "\n")
	if r.tries++; now != r.before {
		r.before, r.tries = now, 0
	}
	r.wait.what = awaited(r.block, output)
	return r.wait.goesOn(r.tries < leastTries)
}

// poll runs a sh block once, or repeatedly until its result matches the page.
func (r Runner) poll(ctx context.Context, s *session, b *Block) error {
	repeat := NewRepeat(r.W, b)
	for {
		output, err := s.run(ctx, b)
		if err == nil {
			err = Judge(b, output)
		}
		if err == nil {
			r.output(output)
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if b.Within == 0 {
			return err
		}
		if !repeat.Again(output) {
			return fmt.Errorf("%w: %w", repeat.wait.over(), err)
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// awaited returns what a block that is repeated waits for.
func awaited(b *Block, output string) string {
	switch {
	case b.Expected == nil && b.Fails:
		return "the command fails"
	case b.Expected == nil:
		return "the command succeeds"
	}
	if line, isMissing := missing(normalise(b.Expected.Text), normalise(output)); isMissing {
		return fmt.Sprintf("the output has the line %q", line)
	}
	return "the output is that of the page"
}

// Judge compares an output with the console block of a sh block.
func Judge(b *Block, output string) error {
	if b.Expected == nil || b.Expected.Skip != "" {
		return nil
	}
	want, got := normalise(b.Expected.Text), normalise(output)
	right, wrong := matches, "the output is not what the page shows"
	if b.Expected.Contains {
		right, wrong = contains, "the output lacks a line of the page"
	}
	if right(want, got) {
		return nil
	}
	return fmt.Errorf("%s\n$ %s\n%s", wrong, strings.TrimSpace(b.Text),
		Diff("page", "output", strings.Join(want, "\n")+"\n", strings.Join(got, "\n")+"\n"))
}

func (r Runner) prose(part Part) {
	if !r.Play || part.Prose == "" {
		return
	}
	text := wrap(part.Prose)
	if part.Heading {
		text = r.paint("1", strings.ToUpper(text))
	}
	fmt.Fprintf(r.W, "\n%s\n", text)
}

// width is the maximum number of columns of prose.
const width = 96

// wrap breaks prose into lines that fit. A table stays as written.
func wrap(prose string) string {
	if strings.HasPrefix(prose, "|") {
		return prose
	}
	return output.Wrap(strings.Join(strings.Fields(prose), " "), width)
}

func (r Runner) command(b *Block) {
	if !r.Play {
		return
	}
	fmt.Fprintln(r.W)
	for line := range strings.SplitSeq(strings.TrimRight(b.Text, "\n"), "\n") {
		if b.Within > 0 && strings.HasPrefix(line, "# This may take a moment") {
			continue // a reader who plays the page need not run the block again
		}
		fmt.Fprintln(r.W, r.paint("36", "$ "+line))
	}
}

func (r Runner) output(output string) {
	if r.Play && output != "" {
		fmt.Fprintln(r.W, strings.TrimRight(output, "\n"))
	}
}

func (r Runner) show(b *Block) {
	if r.Play {
		fmt.Fprintf(r.W, "\n%s\n%s\n", r.paint("2", b.File), strings.TrimRight(b.Text, "\n"))
	}
}

func (r Runner) skip(p *Page, b *Block, reason string) {
	if !r.Play {
		fmt.Fprintf(r.W, "  skipped: %s:%d: %s\n", shortPath(p.Path), b.Line, reason)
	} else if b.Lang == "sh" {
		fmt.Fprintf(r.W, "\n(not run here: %s)\n%s\n", reason, strings.TrimRight(b.Text, "\n"))
	}
}

func (r Runner) paint(code, text string) string {
	if !r.Color {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// shortPath is the page's folder and name.
func shortPath(path string) string {
	if wd, err := os.Getwd(); err == nil {
		if rel, err := filepath.Rel(wd, path); err == nil && !strings.HasPrefix(rel, "..") {
			return rel
		}
	}
	return path
}
