// Package exercise implements the learner's loop: a reader writes a program, and the lab judges it.
package exercise

import (
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"example.com/operator-workshop/scripts/examine/specification"
	"example.com/operator-workshop/scripts/examine/strictyaml"
	"example.com/operator-workshop/scripts/internal/difference"
	"example.com/operator-workshop/scripts/internal/translation"
)

// File is the list of a chapter's exercises, in the chapter's folder:
//
//	exercises:
//	- id: "04.3"                     # chapter, dot, number; the order in which a reader does them
//	  title: Children that come back
//	  minutes: 20
//	  story: |                       # what breaks without it, for whom, and what to write
//	    A user deletes a ConfigMap …
//	  starter: stages/2-create       # a folder of the chapter whose files a reader begins with, or a single file
//	  solution: stages/3-own         # the same for the solution; neither is copied in the repository
//	  file: main.go                  # the file to edit, relative to work/<chapter>; a single file is put there
//	  # The check, exactly one of:
//	  lab: [behaviour/05-deleted-configmap]   # checks of the lab, on the reader's program
//	  test: {files: [exercises/types_test.go], package: ./v1, run: TestTypes}
//	  crd: {accepts: […], refuses: […], shows: […]}
//	  specification: exercises/kind/specification.yaml # experiments of the lab, on generated files of the reader's types
//	  except: [behaviour/01-status]  # checks of earlier exercises that are not run, with a comment why
//	  loses: [behaviour/11-annotated] # checks of earlier exercises that the solution fails: a later one passes them again
//	  also: [behaviour/11-annotated]  # checks that the solution passes, but that `make check` does not run
//	  fresh: true                    # it does not build on the exercises before: their checks are not run
//	  fails: not within              # the reason for which the starter fails: a regular expression over what check
//	                                  # prints
//	  hints:
//	    nudge: What watches the ConfigMaps?
//	    explanation: …
//	    line: Owns(&corev1.ConfigMap{}).
//	  wrong:                         # known wrong answers, at least two
//	  - name: owner without a watch
//	    replace:                     # its differences from the solution; `file:` is needed for another file
//	    - {old: "Owns(&corev1.ConfigMap{}).", new: ""}
//	    says: not within             # a part of its failure,
//	    source: SetControllerReference  # a part of its source, and
//	    lacks: Owns\(                # a part that is missing: regular expressions; all given ones must agree
//	    hint: The ConfigMap has an owner, but the operator does not watch it.
//	  - name: swapped arguments
//	    replace: […]
//	    mistake: owner and child are swapped  # an entry of mistakes.yaml recognises it, and has the hint
//
// A wrong answer must be recognised by its own entry and by no other, or by the entry of mistakes.yaml that it names.
// `make exercises-verify` proves it.
const File = "exercises.yaml"

// An Exercise is a task, the check that judges it, and help. File describes its fields.
type Exercise struct {
	ID       string   `json:"id"`
	Title    string   `json:"title"`
	Minutes  int      `json:"minutes"`
	Story    string   `json:"story"`
	Starter  string   `json:"starter"`
	Solution string   `json:"solution"`
	File     string   `json:"file"`
	Lab      []string `json:"lab,omitempty"`
	Test     *Test    `json:"test,omitempty"`
	CRD      *CRD     `json:"crd,omitempty"`
	// Specification is a file: the lab makes its checks from it.
	Specification string   `json:"specification,omitempty"`
	Except        []string `json:"except,omitempty"`
	Loses         []string `json:"loses,omitempty"`
	Also          []string `json:"also,omitempty"`
	Fresh         bool     `json:"fresh,omitempty"`
	Fails         string   `json:"fails"`
	Hints         Hints    `json:"hints"`
	Wrong         []Wrong  `json:"wrong"`

	// Chapter is the folder of the list, relative to the checkout.
	Chapter string `json:"-"`
	// Folder is the folder of the reader's files in work/, when it differs from the chapter's name.
	Folder string `json:"-"`
	// made has the files of a starter that has no folder in the chapter.
	made map[string][]byte
	// said has the language of the texts; nil is English.
	said *translation.Translation
}

// Test has Go tests that run as if they were beside the reader's files. They run in the module of the work folder, with
// bin/ in PATH, KUBEBUILDER_ASSETS for tests with an API server, and WORKSHOP_ROOT.
type Test struct {
	// Files are tests of the chapter, by their paths in the chapter.
	Files []string `json:"files"`
	// Package is the folder of the tests, relative to the work folder; the default is ".".
	Package string `json:"package,omitempty"`
	// Run is the argument of `go test -run`.
	Run string `json:"run"`
}

// CRD installs the reader's CustomResourceDefinition under a separate group, and tries objects on it.
type CRD struct {
	// Accepts are manifests of the chapter, files or folders, that the API server must accept.
	Accepts []string `json:"accepts,omitempty"`
	// Refuses are manifests that it must refuse.
	Refuses []Refusal `json:"refuses,omitempty"`
	// Shows are kubectl commands and their expected output.
	Shows []Shown `json:"shows,omitempty"`
}

// A Refusal is a manifest, a file or a folder, and a part of the API server's message (empty: any).
type Refusal struct {
	Manifest string `json:"manifest"`
	Says     string `json:"says,omitempty"`
}

// Shown creates the manifest, if there is one, runs kubectl, and requires its output to match.
type Shown struct {
	Manifest string `json:"manifest,omitempty"`
	// Kubectl are arguments, such as: get mywebs web -o jsonpath={.spec.replicas}.
	Kubectl string `json:"kubectl"`
	// Prints is a regular expression.
	Prints string `json:"prints"`
}

// Hints are shown one at a time, in this order.
type Hints struct {
	Nudge       string `json:"nudge"`
	Explanation string `json:"explanation"`
	Line        string `json:"line"`
}

// Wrong is a known wrong answer.
type Wrong struct {
	Name    string    `json:"name"`
	Replace []Replace `json:"replace"`
	Says    string    `json:"says,omitempty"`
	Source  string    `json:"source,omitempty"`
	Lacks   string    `json:"lacks,omitempty"`
	// Statement is a part of a statement that only the reader's program has: neither the starter nor the solution.
	Statement string `json:"statement,omitempty"`
	// Shape names what several statements of a function have: see shapes.
	Shape string `json:"shape,omitempty"`
	// Kind is that of the difference that shows it, if there is one.
	Kind difference.Kind `json:"kind,omitempty"`
	// Guess means that other mistakes have the same failure.
	Guess   bool   `json:"guess,omitempty"`
	Hint    string `json:"hint,omitempty"`
	Mistake string `json:"mistake,omitempty"`
}

//go:embed mistakes.yaml
var mistakesFile []byte

// mistakes are known mistakes in all exercises. A hint may have groups of the pattern says, such as ${field}.
var mistakes = func() (all []Wrong) {
	if err := yaml.UnmarshalStrict(mistakesFile, &all); err != nil {
		panic(fmt.Errorf("read mistakes.yaml: %w", err))
	}
	return all
}()

//go:embed facts.yaml
var factsFile []byte

// A fact is what a name means that a statement has. Name is a pattern.
type fact struct {
	Name string `json:"name"`
	Says string `json:"says"`
}

var facts = func() (all []fact) {
	if err := yaml.UnmarshalStrict(factsFile, &all); err != nil {
		panic(fmt.Errorf("read facts.yaml: %w", err))
	}
	return all
}()

// Replace changes a text that occurs exactly once in a file.
type Replace struct {
	File string `json:"file,omitempty"`
	Old  string `json:"old"`
	New  string `json:"new"`
}

// Load reads all exercises of a checkout, in their order.
func Load(root string) (all []Exercise, err error) {
	var lists []string
	for _, pattern := range []string{"[0-9][0-9]-*", "[0-9][0-9]-*/*"} {
		found, err := filepath.Glob(filepath.Join(root, pattern, File))
		if err != nil {
			return nil, err
		}
		lists = append(lists, found...)
	}
	for _, path := range lists {
		var list struct{ Exercises []Exercise }
		if err := strictyaml.Read(path, &list); err != nil {
			return nil, err
		}
		chapter, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return nil, err
		}
		for _, e := range list.Exercises {
			e.Chapter = chapter
			if err := e.check(root); err != nil {
				return nil, fmt.Errorf("%s: exercise %s: %w", path, e.ID, err)
			}
			all = append(all, e)
		}
	}
	slices.SortStableFunc(all, func(a, b Exercise) int { return compareIDs(a.ID, b.ID) })
	for n := 1; n < len(all); n++ {
		if all[n].ID == all[n-1].ID {
			return nil, fmt.Errorf("there are two exercises %s", all[n].ID)
		}
	}
	return all, nil
}

var idPattern = regexp.MustCompile(`^(\d\d)\.(\d{1,2})$`)

// compareIDs sorts 04.10 after 04.9.
func compareIDs(a, b string) int {
	chapter, number, _ := strings.Cut(a, ".")
	chapterB, numberB, _ := strings.Cut(b, ".")
	n, _ := strconv.Atoi(number)
	m, _ := strconv.Atoi(numberB)
	return cmp.Or(cmp.Compare(chapter, chapterB), cmp.Compare(n, m))
}

// check returns an error for each mistake in the description of an exercise.
func (e Exercise) check(root string) error {
	var errs []error
	want := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	want(idPattern.MatchString(e.ID), "an id is like 04.3")
	want(strings.HasPrefix(e.Chapter, e.ID[:min(2, len(e.ID))]), "it is in the list of %s", e.Chapter)
	texts := map[string]string{"title": e.Title, "story": e.Story, "file": e.File, "fails": e.Fails,
		"nudge": e.Hints.Nudge, "explanation": e.Hints.Explanation, "line": e.Hints.Line}
	for name, text := range texts {
		want(strings.TrimSpace(text) != "", "%s is missing", name)
	}
	want(e.Minutes > 0, "minutes are missing")
	judges := 0
	for _, there := range []bool{len(e.Lab) > 0, e.Test != nil, e.CRD != nil, e.Specification != ""} {
		if there {
			judges++
		}
	}
	want(judges == 1, "it wants exactly one of lab, test, crd and specification")
	if e.Specification != "" {
		_, err := specification.Read(filepath.Join(root, e.Chapter, e.Specification))
		want(err == nil, "%v", err)
	}
	for _, path := range []string{e.Starter, e.Solution} {
		_, err := os.Stat(filepath.Join(root, e.Chapter, path))
		want(path != "" && err == nil, "%q is not in the chapter", path)
	}
	want(len(e.Wrong) >= 2, "it wants at least two known wrong answers")
	patterns := []string{e.Fails}
	for _, w := range e.Wrong {
		if w.Mistake != "" {
			isIt := func(m Wrong) bool { return m.Name == w.Mistake }
			want(slices.ContainsFunc(mistakes, isIt), "mistakes.yaml has no %q", w.Mistake)
			continue
		}
		want(w.Name != "" && w.Hint != "" && len(w.Replace) > 0, "wrong answer %q wants a name, a hint and replace", w.Name)
		want(w.Says != "" || w.Source != "" || w.Lacks != "", "wrong answer %q wants says, source or lacks", w.Name)
		patterns = append(patterns, w.Says, w.Source, w.Lacks)
	}
	for _, p := range patterns {
		_, err := regexp.Compile(p)
		want(err == nil, "%v", err)
	}
	return errors.Join(errs...)
}

// Find returns the exercise with the ID that a reader types: 04.3, or 4.3.
func Find(all []Exercise, id string) (Exercise, error) {
	if id == CapstoneID {
		e := Capstone
		if len(all) > 0 {
			e = e.In(all[0].said)
		}
		return e, nil
	}
	if at := strings.Index(id, "."); at == 1 {
		id = "0" + id
	}
	if at := slices.IndexFunc(all, func(e Exercise) bool { return e.ID == id }); at >= 0 {
		return all[at], nil
	}
	chapter, _, _ := strings.Cut(id, ".")
	of := slices.DeleteFunc(slices.Clone(all), func(e Exercise) bool {
		return !strings.HasPrefix(e.ID, chapter+".") && !strings.HasPrefix(e.ID, "0"+chapter+".")
	})
	if len(of) == 0 {
		of = all
	}
	return Exercise{}, fmt.Errorf("there is no exercise %q: there are %s to %s", id, of[0].ID, of[len(of)-1].ID)
}

// before returns the exercises whose checks a solution must pass, too: the earlier exercises of the chapter, back to
// the last fresh exercise.
func before(all []Exercise, e Exercise) (some []Exercise) {
	if e.Fresh {
		return nil
	}
	for _, other := range all {
		switch {
		case other.ID == e.ID:
			return some
		case other.Chapter != e.Chapter:
		case other.Fresh:
			some = []Exercise{other}
		default:
			some = append(some, other)
		}
	}
	return some
}

// Recognise returns the known wrong answers that match a failure and its source. When none matches, it returns the
// mistakes that match. A mistake that a statement shows is not among them.
func (e Exercise) Recognise(failure, source string) []Wrong {
	if own := recognise(e.Wrong, failure, source); len(own) > 0 {
		return own
	}
	return recognise(inLanguage(e.said, mistakes), failure, source)
}

func recognise(known []Wrong, failure, source string) (some []Wrong) {
	find := func(pattern, text string) []int {
		return regexp.MustCompile(`(?m)` + pattern).FindStringSubmatchIndex(text)
	}
	for _, w := range known {
		says, isThere := find(w.Says, failure), find(w.Source, source) != nil
		if w.Mistake != "" || w.Statement+w.Shape != "" || says == nil || !isThere || w.Lacks != "" && find(w.Lacks, source) != nil {
			continue
		}
		w.Hint = string(regexp.MustCompile(`(?m)`+w.Says).ExpandString(nil, w.Hint, failure, says))
		w.Hint = strings.ReplaceAll(w.Hint, `\"`, `"`) // a log in JSON has them
		some = append(some, w)
	}
	return some
}
