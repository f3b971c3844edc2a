package exercise

import (
	"context"
	"os"
	"path/filepath"
	"strings"
)

// crdFolder is the folder of the generated CRD, beside the types.
const crdFolder = "crd"

// specified generates from the reader's types, and lets the lab judge the operator by the specification.
func (c Course) specified(ctx context.Context, e Exercise, r *Judgement) error {
	if e.ID == CapstoneID {
		if _, err := c.Planned(); err != nil {
			return err
		}
	}
	job := Job{Name: "reader", Specification: c.specification(e), CRD: filepath.Join(c.Dir(e), crdFolder)}
	if err := c.Judge.Generate(ctx, c.Dir(e), job.CRD, filepath.Join("work", e.folder())); err != nil {
		return err
	}
	return c.operate(ctx, e, ".", job, nil, r)
}

// Generate makes the deep copies, and the CRD in a folder, from the markers in the types of dir. Messages call this
// folder shown.
func (j Judge) Generate(ctx context.Context, dir, crd, shown string) error {
	defer j.Wait("making the CRD and the deep copies from " + shown)()
	if err := os.RemoveAll(crd); err != nil { // the CRD of a type that is gone
		return err
	}
	if err := os.MkdirAll(crd, 0o755); err != nil {
		return ways(err)
	}
	out, err := j.command(ctx, dir, filepath.Join(j.Bin, "controller-gen"), "object", "crd", "paths=.",
		"output:crd:dir="+crd).CombinedOutput()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		text, _, _ := strings.Cut(string(out), "Error: not all generators ran successfully")
		return compileError(strings.ReplaceAll(text, dir+string(filepath.Separator), ""), shown, err)
	}
	return nil
}

// isGenerated reports whether a file of a specified exercise is made by Generate.
func (e Exercise) isGenerated(name string) bool {
	return e.Specification != "" && (filepath.Dir(name) == crdFolder || name == "zz_generated.deepcopy.go")
}
