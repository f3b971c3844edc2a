package exercise

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"example.com/operator-workshop/scripts/examine/loop"
	"example.com/operator-workshop/scripts/examine/outcome"
)

// Kept returns the folder with the loop of an exercise's last check; all bugs share one folder.
func (c Course) Kept(e Exercise) loop.Kept {
	return loop.KeptOf(c.Checks, shortID(e))
}

// ofEachNamespace is the ConfigMap that the cluster creates in each namespace.
const ofEachNamespace = "kube-root-ca.crt"

// counting returns the verdict whose loop is kept: of the first failed check, or of the exercise's own check. When an
// operator with a specification passed, it is the return of a deleted child.
func counting(all []Result, e Exercise) Result {
	at := slices.IndexFunc(all, func(v Result) bool { return !v.Passed() })
	if at < 0 && e.Specification != "" {
		at = slices.IndexFunc(all, func(v Result) bool { return v.ID == "drift" })
	}
	return all[max(0, at)]
}

// keep copies the loop of the check that counts from the ledger of a run.
func (c Course) keep(ctx context.Context, e Exercise, ledger string, r *Judgement) error {
	all := slices.Concat(r.Own, r.Earlier)
	if c.Checks == "" || len(all) == 0 {
		return nil
	}
	counts := counting(all, e)
	records, err := loop.All(ctx, ledger)
	if errors.Is(err, os.ErrNotExist) {
		return nil // the lab needed no control plane
	}
	if err != nil {
		return err
	}
	records = slices.DeleteFunc(records, func(r loop.Record) bool {
		elsewhere := r.Namespace != "" && r.Namespace != counts.Namespace && (r.Is == loop.Note || !r.IsHousekeeping())
		return elsewhere || r.Name == ofEachNamespace || counts.End > 0 && r.N > counts.End
	})
	message, _, _ := strings.Cut(counts.What, "\n")
	j := loop.KeptVerdict{Exercise: e.ID, Passed: r.Passed(), Check: counts.ID, Message: ended(message),
		At: lastOf(records, counts.At), Namespace: counts.Namespace}
	if err := ways(c.Kept(e).Write(records, j)); err != nil {
		return err
	}
	r.Kept = true
	if r.Passed() {
		var text strings.Builder
		p := loop.Printer{W: &text, Namespace: counts.Namespace}
		for _, one := range loop.Essence(records) {
			err = errors.Join(err, p.Print(one))
		}
		err = errors.Join(err, p.Close())
		r.Loop = strings.FieldsFunc(text.String(), func(r rune) bool { return r == '\n' })
	}
	return err
}

// lastOf returns the number of the record at a given number. When it is not printed, lastOf returns the number of the
// last event, change or note before it, or 0.
func lastOf(records []loop.Record, number int) (at int) {
	for _, r := range records {
		isPrinted := r.Is == loop.Note || !r.IsHousekeeping() && !r.IsEndOfWatch()
		if isPrinted && (r.N == number || r.N < number && (r.Is != loop.Request || r.Changes())) {
			at = r.N
		}
	}
	return at
}

// PrintKept writes the kept loop of a check, and marks the moment at which the program differed. Next, when set, is
// called before each line.
func PrintKept(w io.Writer, records []loop.Record, j loop.KeptVerdict, next func() error) error {
	p := loop.Printer{W: w, Namespace: j.Namespace}
	fmt.Fprintf(w, "%s: %s, the last time\n", j.Exercise, map[bool]string{true: "passed", false: "failed"}[j.Passed])
	outcome.Wrap(w, "", "what a user did, and what the program got and sent, in "+j.Check+":")
	for _, r := range records {
		if next != nil && !r.IsHousekeeping() {
			if err := next(); err != nil {
				return err
			}
		}
		if err := p.Print(r); err != nil {
			return err
		}
		if r.N != j.At {
			continue
		}
		if err := p.Close(); err != nil {
			return err
		}
		mark(w, j)
	}
	if err := p.Close(); err != nil {
		return err
	}
	if !j.Passed && j.At == 0 {
		mark(w, j)
	}
	return nil
}

// mark writes the difference.
func mark(w io.Writer, j loop.KeptVerdict) {
	outcome.Wrap(w, ">>> ", "here it differed: "+j.Message)
}
