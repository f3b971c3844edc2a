package exercise

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"example.com/operator-workshop/scripts/examine/outcome"
	"example.com/operator-workshop/scripts/internal/mutant"
)

// bugPrefix is the prefix of bugs in the state.
const bugPrefix = "bug/"

// IsBug reports whether an ID belongs to a bug.
func IsBug(id string) bool { return strings.HasPrefix(id, bugPrefix) }

//go:embed bugs.yaml
var bugsFile []byte

// A Bug is a mutant of the lab, described as a user of the operator would report it.
type Bug struct {
	// Mutant is the name of the mutant in the lab.
	Mutant string `json:"mutant"`
	// Level is 1 to 3.
	Level   int    `json:"level"`
	Symptom string `json:"symptom"`

	planted mutant.Mutant
}

// Bugs returns all bugs in the order of their numbers, which begin at 1.
func Bugs(root string) ([]Bug, error) {
	var bugs []Bug
	if err := yaml.UnmarshalStrict(bugsFile, &bugs); err != nil {
		return nil, fmt.Errorf("read bugs.yaml: %w", err)
	}
	for n := range bugs {
		var err error
		if bugs[n].planted, err = mutant.Read(root, bugs[n].Mutant); err != nil {
			return nil, err
		}
	}
	return bugs, nil
}

// core lists the files of the operators to read first, in this order. The other files are hardening.
var core = map[string][]string{
	"03": {"pkg/apis/myweb/v1/types.go", "internal/controller/informers.go", "internal/controller/handlers.go",
		"internal/controller/controller.go", "internal/controller/sync.go", "internal/myweb/desired.go",
		"internal/owned/owner.go", "internal/owned/conditions.go", "internal/controller/apply.go"},
	"04": {crdFile, "internal/controller/controller.go", "internal/controller/reconcile.go", "internal/myweb/desired.go",
		"internal/owned/owner.go", "internal/owned/apply.go", "internal/owned/conditions.go"},
}

// reading says which files to read, where they are, and in which order.
func (b Bug) reading() string {
	files := strings.Join(core[b.planted.Of], ", ")
	if b.Level == 1 {
		return "The fault is in one of these files of work/bug; read them in this order: " + files + "."
	}
	return "Begin with the core, in this order: " + files + ". Then follow its calls, to the files beside it and to " +
		"internal/hardening, where there is one."
}

// rises is how many bugs of a level a reader fixes before the next level.
const rises = 3

// Reached returns the chapter and the level of the next bug. The chapter is 03 when the exercise that the reader began
// last is in it, else 04. The level rises by one after each three fixed bugs of a level.
func Reached(bugs []Bug, s State) (chapter string, level int) {
	chapter = "04"
	if strings.HasPrefix(s.Exercise, "03.") {
		chapter = "03"
	}
	fixed := map[int]int{}
	for _, b := range bugs {
		if s.Passed[b.Exercise().ID] != "" {
			fixed[b.Level]++
		}
	}
	for level = 1; level < 3 && fixed[level] >= rises; {
		level++
	}
	return chapter, level
}

// ChooseBug returns the bug with a number, or a bug of a level, or a bug for the chapter and the level that the reader
// has reached (0 and 0). It prefers a bug that is not fixed yet.
func ChooseBug(bugs []Bug, s State, number, level int) (Bug, error) {
	if number > len(bugs) || number < 0 {
		return Bug{}, fmt.Errorf("there is no bug N=%d, there are bugs 1 to %d", number, len(bugs))
	}
	if number > 0 {
		return bugs[number-1], nil
	}
	chapter, reached := Reached(bugs, s)
	some := slices.DeleteFunc(slices.Clone(bugs), func(b Bug) bool { return b.Level != cmp.Or(level, reached) })
	if len(some) == 0 {
		return Bug{}, fmt.Errorf("LEVEL=%d: the levels are 1, 2 and 3", level)
	}
	for _, prefers := range []func(Bug) bool{
		func(b Bug) bool { return s.Passed[b.Exercise().ID] == "" },
		func(b Bug) bool { return b.planted.Of == chapter },
	} {
		if better := slices.DeleteFunc(slices.Clone(some), func(b Bug) bool { return !prefers(b) }); len(better) > 0 {
			some = better
		}
	}
	return some[rand.IntN(len(some))], nil
}

// Hint returns the n-th hint, from 0: the file of the fault, its lines, and its description.
func (b Bug) Hint(n int) (text string, last bool) {
	hints := []string{
		"A nudge: `make watch EX=bug` prints what the program got and sent, and where that differed. The fault is in " +
			strings.Join(b.planted.Files(), ", ") + ".",
		"The lines: look near " + strings.Join(b.planted.Places(), ", ") + ".",
		"Why: " + b.planted.Bug + "."}
	n = min(n, len(hints)-1)
	return hints[n], n == len(hints)-1
}

// Exercise returns the exercise whose files are the reader's copy in work/bug.
func (b Bug) Exercise() Exercise {
	return Exercise{ID: bugPrefix + b.Mutant, Title: "Find the bug", Chapter: "bug",
		File: "internal/controller/controller.go"}
}

// original returns the files of the operator in which a bug is planted, without its stages and pages.
func (c Course) original(b Bug) (string, map[string][]byte, error) {
	found, err := filepath.Glob(filepath.Join(c.Root, b.planted.Of+"-*"))
	if err != nil || len(found) != 1 {
		return "", nil, errors.Join(err, fmt.Errorf("there is no one chapter %s", b.planted.Of))
	}
	files, err := read(found[0], filepath.Base(found[0]))
	for name := range files {
		first, _, _ := strings.Cut(name, string(filepath.Separator))
		if slices.Contains([]string{"stages", "exercises", File, "test", "kind.sh"}, first) ||
			strings.HasSuffix(name, "_test.go") || filepath.Ext(name) == ".md" {
			delete(files, name)
		}
	}
	return found[0], files, err
}

// Plant puts the operator with the bug into the reader's work/bug.
func (c Course) Plant(ctx context.Context, b Bug) (saved string, err error) {
	chapter, files, err := c.original(b)
	if err != nil {
		return "", err
	}
	scratch, err := os.MkdirTemp("", "bug-")
	if err != nil {
		return "", ways(err)
	}
	defer os.RemoveAll(scratch)
	for name, data := range files {
		if err := write(filepath.Join(scratch, name), data); err != nil {
			return "", err
		}
	}
	if err := b.planted.Plant(ctx, scratch); err != nil {
		return "", err
	}
	if files, err = read(scratch, "the copy"); err != nil {
		return "", err
	}
	e := b.Exercise()
	if saved, err = c.Put(e, files); err != nil {
		return saved, err
	}
	return saved, errors.Join(c.bugModule(chapter), c.GoOn(e))
}

// bugModule gives work/bug the module path of its chapter.
func (c Course) bugModule(chapter string) error {
	for _, name := range []string{"go.mod", "go.sum"} {
		data, err := os.ReadFile(filepath.Join(chapter, name))
		if err == nil {
			err = write(filepath.Join(c.Dir(Bug{}.Exercise()), name), data)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// crdFile is the file with the lab's CRD.
const crdFile = "config/crd/operator.k8s-summit.org_mywebs.yaml"

// CheckBug examines the reader's copy with the checks that caught the bug and the fast checks of all behaviours.
func (c Course) CheckBug(ctx context.Context, b Bug) (Judgement, error) {
	e := b.Exercise()
	chapter, original, err := c.original(b)
	if err != nil {
		return Judgement{}, err
	}
	return c.check(e, func() error { return c.bugModule(chapter) }, func(r *Judgement) error {
		files, err := c.Written(e)
		if err != nil {
			return err
		}
		main := map[string]string{"03": "./cmd/myweb-controller", "04": "./cmd/myweb-operator"}[b.planted.Of]
		job := Job{Name: "bug", Checks: b.planted.CaughtBy, Then: []string{outcome.Fast}, Of: b.planted.Of,
			Rights: b.planted.Rights, Folder: c.Dir(e)}
		if !bytes.Equal(original[crdFile], files[crdFile]) {
			job.CRD = filepath.Join(c.Dir(e), crdFile)
		}
		return c.operate(ctx, e, main, job, b.planted.CaughtBy, r)
	})
}

// Solution returns the description of the fault, and the bug as a patch.
func (b Bug) Solution() string {
	return fmt.Sprintf("%s\n\nThe planted lines (+), and the lines before (-):\n\n%s", b.planted.Bug, b.planted.Diff)
}
