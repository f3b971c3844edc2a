package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"example.com/operator-workshop/scripts/examine/process"
	"example.com/operator-workshop/scripts/internal/chapter"
	"example.com/operator-workshop/scripts/internal/doctor"
	"example.com/operator-workshop/scripts/internal/exercise"
)

// readyExercise is judged with its solution: the check compiles an operator, and needs the lab with its control plane.
const readyExercise = "04.2"

// scaffolds is the folder whose pages need operator-sdk, kubebuilder, and the modules of a new project.
const scaffolds = "05-operator-sdk"

// codeDays is how many days the list of codes has.
const codeDays = 21

// readyCommand does once what an attendee does in the room, so that everything is compiled beforehand.
func readyCommand() *cobra.Command {
	var codes bool
	var ch string
	cmd := newCommand("ready CHAPTER", "Run the demo, compile the lab, judge an exercise, and print a code",
		cobra.ExactArgs(1), func(cmd *cobra.Command, w workshop, args []string) error {
			ctx := cmd.Context()
			commit, err := w.commit(ctx)
			if err != nil {
				return err
			}
			if codes {
				fmt.Printf("The codes of commit %.12s, by the day on which `make ready` was run:\n", commit)
				for n := range codeDays {
					day := time.Now().AddDate(0, 0, -n)
					fmt.Println(day.Format(time.DateOnly), readyCode(day, commit))
				}
				return nil
			}
			chapters, err := chapter.Select(w.root, ch)
			if err != nil {
				return err
			}
			machine := doctor.Local(w.root)
			findings := doctor.Run(ctx, machine)
			brief := doctor.Brief(ctx, machine, findings)
			if doctor.Worst(findings) == doctor.Failure {
				return fmt.Errorf("this machine is not ready: `make doctor` says what to do\n%s", brief)
			}
			if err := w.playDemo(cmd, args[0], false); err != nil {
				return fmt.Errorf("the demo: %w", err)
			}
			if err := w.judgeOne(ctx); err != nil {
				return err
			}
			if ch != "" {
				if err := w.scaffold(ctx, chapters); err != nil {
					return err
				}
			}
			now := time.Now()
			fmt.Printf("\nThe demo ran, the lab is compiled, exercise %s was judged. `make down` removes the cluster.\n"+
				"Send this line to your instructor:\nready %s %s %.12s %s\n", readyExercise, readyCode(now, commit),
				now.Format(time.DateOnly), commit, brief)
			return nil
		})
	cmd.Flags().BoolVar(&codes, "codes", false, "list the codes of this commit, for the instructor")
	cmd.Flags().StringVar(&ch, "ch", "", "the chapters of the evening: 05 also compiles operator-sdk")
	return cmd
}

// scaffold writes the scaffolds of chapter 05 when it is among the chapters, with operator-sdk and with kubebuilder.
func (w workshop) scaffold(ctx context.Context, chapters []string) error {
	if !slices.ContainsFunc(chapters, func(dir string) bool { return chapter.Within([]string{scaffolds}, dir) }) {
		return nil
	}
	fmt.Println("\nThe scaffolds of chapter 05 need operator-sdk: compiling it takes 7 minutes of one core, once.")
	for _, args := range [][]string{{}, {"kubebuilder"}} {
		cmd := process.Command(ctx, cleanUp, filepath.Join(w.root, scaffolds, "scaffold.sh"), args...)
		if err := foreground(cmd, os.Stdout); err != nil {
			return fmt.Errorf("the scaffolds of chapter 05: %w", err)
		}
	}
	return nil
}

// readyCode is made from the day and the commit, so that the instructor's machine can compute it, too.
func readyCode(day time.Time, commit string) string {
	sum := fmt.Sprintf("%x", sha256.Sum256([]byte("ready "+day.Format(time.DateOnly)+" "+commit)))
	return sum[:4] + "-" + sum[4:8]
}

// commitFile has the commit in an archive of the repository; git writes it there.
const commitFile = "scripts/commit.txt"

// commit returns the commit of this checkout: that of the clone, or that of the bundle from which the checkout was
// unpacked.
func (w workshop) commit(ctx context.Context) (string, error) {
	text, err := os.ReadFile(filepath.Join(w.root, commitFile))
	if err != nil {
		return "", err
	}
	if archived := strings.TrimSpace(string(text)); !strings.HasPrefix(archived, "$") {
		return archived, nil
	}
	commit, err := w.git(ctx, "rev-parse", "HEAD")
	if err != nil {
		return "", fmt.Errorf("git does not know the commit of this checkout: clone the repository, or take a bundle: %w", err)
	}
	changed, err := w.git(ctx, "status", "--porcelain", "--untracked-files=no")
	if changed != "" {
		fmt.Fprintln(os.Stderr, "note: files of the workshop were changed, so the code is not on the list: git status")
		commit += " changed"
	}
	return commit, err
}

// judgeOne lets the lab judge the solution of an exercise, in a separate work folder.
func (w workshop) judgeOne(ctx context.Context) error {
	c, err := w.course()
	if err != nil {
		return err
	}
	e, err := exercise.Find(c.All, readyExercise)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(w.state, "ready-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	c.Work = filepath.Join(dir, "work")
	files, err := c.Files(e, e.Solution)
	if err != nil {
		return err
	}
	if _, err := c.Put(e, files); err != nil {
		return err
	}
	r, err := c.Check(ctx, e)
	if err != nil {
		return err
	}
	r.Print(os.Stdout, e, false)
	if !r.Passed() {
		return fmt.Errorf("the solution of %s did not pass here: send the lines above to your instructor", e.ID)
	}
	return nil
}

// firstFailed returns the name of the failed check that the room sees.
func firstFailed(r exercise.Judgement) string {
	if r.Compile != nil {
		return "does not compile"
	}
	for _, v := range slices.Concat(r.Own, r.Earlier) {
		if !v.Passed() {
			return v.ID
		}
	}
	return ""
}

// restoreCommand restores files that goto or reset has saved.
func restoreCommand() *cobra.Command {
	var number int
	cmd := newCommand("restore", "List saved files, or bring one of them back", cobra.NoArgs,
		func(_ *cobra.Command, w workshop, _ []string) error {
			c, err := w.course()
			if err != nil {
				return err
			}
			copies, err := c.Saved()
			switch {
			case err != nil:
				return err
			case len(copies) == 0:
				return errors.New("nothing is saved: goto and reset save your files before they replace them")
			case number < 0 || number > len(copies):
				return fmt.Errorf("there is no copy %d, but %d of them: `make restore` lists them", number, len(copies))
			case number > 0:
				from := copies[number-1]
				saved, err := c.Restore(from)
				reportSaved(saved)
				if err == nil {
					fmt.Printf("work/%s is as it was at %s (%s).\n", from.Folder, from.Time, cmp.Or(from.Exercise, "no exercise"))
				}
				return err
			}
			for n, one := range copies {
				fmt.Printf("N=%-3d %s  %-9s work/%s\n", n+1, one.Time, cmp.Or(one.Exercise, "–"), one.Folder)
			}
			fmt.Println("`make restore N=1` brings the first one back, and saves your present files.")
			return nil
		})
	cmd.Flags().IntVar(&number, "n", 0, "the number of the copy")
	return cmd
}
