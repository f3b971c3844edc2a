package exercise

import (
	"go/format"
	"io"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"example.com/operator-workshop/scripts/examine/specification"
	"example.com/operator-workshop/scripts/internal/testkit"
)

func planned(t *testing.T, text string) specification.Specification {
	t.Helper()
	path := filepath.Join(t.TempDir(), specification.File)
	testkit.Write(t, path, text)
	s, err := specification.Read(path)
	testkit.Must(t, err)
	return s
}

// TestAPlanFromAnswers: a wrong answer is asked for again, with its mistake, and the rest is kept.
func TestAPlanFromAnswers(t *testing.T) {
	answers := []string{"example", "example.com", "1, Pod", "1, 4", "message", "message text",
		"message string default=Hello maxLength=40 reaches=ConfigMap",
		"replicas integer default=9 maximum=3 reaches=Deployment",
		"replicas integer default=1 minimum=1 maximum=3 reaches=Deployment", "", ""}
	var out strings.Builder
	got, err := Ask(strings.NewReader(strings.Join(answers, "\n")+"\n"), &out, "Greeting")
	testkit.Must(t, err)
	if d := cmp.Diff(planned(t, specification.Example), got); d != "" {
		t.Error(d)
	}
	for _, want := range []string{`group: "example" is not an API group`, `children: "Pod" is not a kind`,
		"a field has a name and a type", `type: "text" is not a type`, "default: 9 is outside the limits"} {
		if strings.Count(out.String(), want) != 1 {
			t.Errorf("%q is not once in\n%s", want, &out)
		}
	}
	if _, err := Ask(strings.NewReader("example.com\n"), io.Discard, "Greeting"); err == nil {
		t.Error("answers that end early make a specification")
	}
}

// TestTheStarterIsOfTheKind: the files are Go, name the kind, and have no solution.
func TestTheStarterIsOfTheKind(t *testing.T) {
	files, err := starterOf(planned(t, strings.ReplaceAll(specification.Example, "Greeting", "Salute")))
	testkit.Must(t, err)
	want := []string{"Makefile", "main.go", "sample.yaml", "specification.yaml", "types.go"}
	if d := cmp.Diff(want, slices.Sorted(maps.Keys(files))); d != "" {
		t.Fatal(d)
	}
	for name, data := range files {
		formatted, err := format.Source(data)
		if filepath.Ext(name) == ".go" && (err != nil || string(formatted) != string(data)) {
			t.Errorf("%s: %v", name, err)
		}
		if !strings.Contains(string(data), "Salute") || strings.Contains(string(data), "Greeting") {
			t.Errorf("%s is not about the kind:\n%s", name, data)
		}
	}
	if source := string(files["types.go"]); strings.Contains(source, "message") {
		t.Errorf("the starter has a field:\n%s", source)
	}
	var sample map[string]any
	testkit.Must(t, yaml.Unmarshal(files["sample.yaml"], &sample))
	if d := cmp.Diff(map[string]any{"message": "Hello", "replicas": 1.0}, sample["spec"]); d != "" {
		t.Error(d)
	}
}

// TestNothingOfAPlanIsLost: a new plan saves the files of the one before, and reset keeps the reader's plan.
func TestNothingOfAPlanIsLost(t *testing.T) {
	c := newCourse(t)
	if _, err := c.Files(Capstone, ""); err == nil || !strings.Contains(err.Error(), "EX=capstone KIND=Greeting") {
		t.Errorf("without a plan: %v", err)
	}
	begin := func(text string) string {
		e, err := Capstone.Plan(planned(t, text))
		testkit.Must(t, err)
		b, err := c.Begin(e, Always)
		testkit.Must(t, err)
		return b.Saved
	}
	if saved := begin(specification.Example); saved != "" {
		t.Errorf("saved: %s", saved)
	}
	mine := filepath.Join(c.Dir(Capstone), "types.go")
	testkit.Must(t, write(mine, []byte("package main // mine\n")))
	saved := begin(strings.ReplaceAll(specification.Example, "Greeting", "Salute"))
	saved = filepath.Join(c.Work, strings.TrimPrefix(saved, "work/"), "types.go")
	if got := testkit.Read(t, saved); got != "package main // mine\n" {
		t.Errorf("saved: %q", got)
	}
	testkit.Must(t, write(mine, []byte("package main // mine\n")))
	_, err := c.Goto(Capstone, Always) // make reset
	testkit.Must(t, err)
	if got := testkit.Read(t, mine); !strings.Contains(got, "type SaluteSpec struct{}") {
		t.Errorf("reset wrote\n%s", got)
	}
	plan := filepath.Join(c.Dir(Capstone), specification.File)
	testkit.Must(t, write(plan, []byte(strings.Replace(testkit.Read(t, plan), "Salute", "salute", 1))))
	if _, err := c.Check(t.Context(), Capstone); err == nil || !strings.Contains(err.Error(), `kind: "salute" is not`) {
		t.Errorf("a wrong plan: %v", err)
	}
}

// TestEachExperimentHasHints compares the hints with the experiments of the lab.
func TestEachExperimentHasHints(t *testing.T) {
	source := testkit.Read(t, filepath.Join("..", "..", "examine", "judge.go"))
	want := []string{"begin"}
	for _, m := range regexp.MustCompile(`(?m)^\t"([a-z-]+)": +"`).FindAllStringSubmatch(source, -1) {
		want = append(want, m[1])
	}
	slices.Sort(want)
	if got := slices.Sorted(maps.Keys(experimentHints)); len(want) < 8 || !slices.Equal(got, want) {
		t.Errorf("hints of %q, experiments %q", got, want)
	}
	c := newCourse(t)
	for n, want := range []string{"A nudge: Which event", "Why: A controller gets", "Where to look:\n04-controller-runtime/"} {
		text, last := c.Hint(Capstone, State{Hints: n, Failure: "drift: failed\nexpected that"})
		if !strings.HasPrefix(text, want) || last != (n == 2) {
			t.Errorf("hint %d is %q, %v", n, text, last)
		}
	}
	for name, h := range experimentHints {
		for _, place := range regexp.MustCompile(`[\w-]+/[\w/-]*\.go`).FindAllString(h.Line, -1) {
			if strings.HasPrefix(place, "0") {
				testkit.Read(t, filepath.Join("..", "..", "..", place))
			}
		}
		if h.Nudge == "" || h.Explanation == "" || h.Line == "" {
			t.Errorf("%s lacks a hint: %+v", name, h)
		}
	}
}
