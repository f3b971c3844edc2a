package exercise

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	"sigs.k8s.io/yaml"

	"example.com/operator-workshop/scripts/examine/specification"
)

// CapstoneID is the ID of the exercise in which a reader specifies a kind, and writes its operator.
const CapstoneID = "capstone"

// Capstone is that exercise. Its program is in the module of chapter 04, so that no module has to be downloaded.
var Capstone = Exercise{ID: CapstoneID, Title: "An operator for your own kind", Minutes: 60,
	Chapter: "04-controller-runtime", Folder: "capstone", File: "main.go", Specification: specification.File, Fresh: true,
	Story: `You have a specification, empty types, and a program that does nothing. Write the types and the operator.
The lab makes its checks from your specification, in the order in which you build: the CRD has the fields, a sample
gets its children, a deleted child comes back, each field reaches its child, the conditions become True, a deletion
leaves nothing, and a restarted operator writes nothing. When a check fails, the lab ends: your next step is to make this
check pass. You may change the specification at any time. Do exercises 04.1 to 04.6 before, and 04.15, a small operator of this
sort.`}

// BeforeCapstone is the last exercise that the capstone needs, SmallCapstone a small operator of its sort, CapstonePage the
// page of the capstone.
const (
	BeforeCapstone = "04.6"
	SmallCapstone  = "04.15"
	CapstonePage   = "04-controller-runtime/exercises/kind/README.md"
)

// Listed returns the exercises with the capstone, which follows the small operator of its sort.
func Listed(all []Exercise) []Exercise {
	at := slices.IndexFunc(all, func(e Exercise) bool { return e.ID == SmallCapstone }) + 1
	if at == 0 {
		at = len(all)
	}
	return slices.Insert(slices.Clone(all), at, Capstone)
}

//go:embed capstone
var capstoneFiles embed.FS

// ErrNoPlan is returned when there is no specification in work/capstone.
var ErrNoPlan = errors.New("work/capstone has no specification.yaml. make exercise EX=capstone KIND=Greeting makes it\n" +
	"from your answers, make exercise EX=capstone SPEC=FILE takes yours, make restore brings files of before")

// Plan returns the capstone with the starter of a specification.
func (e Exercise) Plan(s specification.Specification) (Exercise, error) {
	var err error
	e.made, err = starterOf(s)
	return e, err
}

// Planned returns the specification in work/capstone.
func (w Workspace) Planned() (specification.Specification, error) {
	s, err := specification.Read(w.specification(Capstone))
	if errors.Is(err, fs.ErrNotExist) {
		return s, ErrNoPlan
	}
	return s, err
}

// specification is the path of the specification of an exercise: that of the capstone is the reader's.
func (w Workspace) specification(e Exercise) string {
	if e.ID == CapstoneID {
		return filepath.Join(w.Dir(e), e.Specification)
	}
	return filepath.Join(w.Root, e.Chapter, e.Specification)
}

// starterOf makes the files with which a reader begins: empty types, and a program that does nothing.
func starterOf(s specification.Specification) (map[string][]byte, error) {
	plan, err := s.YAML()
	if err != nil {
		return nil, err
	}
	sample, err := yaml.Marshal(s.Sample())
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{specification.File: plan, "sample.yaml": sample}
	all, err := template.ParseFS(capstoneFiles, "capstone/*.tmpl")
	if err != nil {
		return nil, err
	}
	for _, t := range all.Templates() {
		var text bytes.Buffer
		if err := t.Execute(&text, s); err != nil {
			return nil, err
		}
		files[strings.TrimSuffix(t.Name(), ".tmpl")] = text.Bytes()
	}
	return files, nil
}

// experimentHints are the hints of the capstone, by the experiment that failed.
var experimentHints = func() (all map[string]Hints) {
	data, err := capstoneFiles.ReadFile("capstone/hints.yaml")
	if err == nil {
		err = yaml.UnmarshalStrict(data, &all)
	}
	if err != nil {
		panic(fmt.Errorf("read hints.yaml: %w", err))
	}
	return all
}()

// hintsFor returns the hints of an exercise after a failure. The capstone has hints for each experiment.
func (e Exercise) hintsFor(failure string) Hints {
	if e.ID != CapstoneID {
		return e.Hints
	}
	experiment, _, _ := strings.Cut(failure, ": ")
	h, known := experimentHints[experiment]
	if !known {
		h = experimentHints["begin"]
	}
	h.Nudge, h.Explanation = e.said.Say(reflowed(h.Nudge)), e.said.Say(reflowed(h.Explanation))
	return h
}
