package exercise

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"example.com/operator-workshop/scripts/examine/outcome"
	"example.com/operator-workshop/scripts/examine/strictyaml"
	"example.com/operator-workshop/scripts/internal/difference"
	"example.com/operator-workshop/scripts/internal/testkit"
)

// TestEachMistakeIsProved: a wrong answer of an exercise makes each mistake, and `make exercises-verify` proves that the
// mistake recognises it; or a failure was recorded. A hint has no group that its pattern lacks.
func TestEachMistakeIsProved(t *testing.T) {
	c := newCourse(t)
	group := regexp.MustCompile(`\$\{(\w+)\}`)
	recorded := testkit.Read(t, filepath.Join("testdata", "failures.yaml"))
	for n, m := range mistakes {
		isShown := func(p shownMistake) bool { return p.Mistake == m.Name }
		if m.Statement+m.Shape != "" && slices.ContainsFunc(shownMistakes(t), isShown) && m.Hint != "" {
			continue
		}
		if !strings.Contains(recorded, "\n"+m.Name+": |") && !slices.ContainsFunc(c.All, func(e Exercise) bool {
			return slices.ContainsFunc(e.Wrong, func(w Wrong) bool { return w.Mistake == m.Name })
		}) {
			t.Errorf("no wrong answer makes the mistake %q", m.Name)
		}
		if slices.ContainsFunc(mistakes[:n], func(other Wrong) bool { return other.Name == m.Name }) || m.Says == "" || m.Hint == "" {
			t.Errorf("%q is there twice, or has no says or no hint", m.Name)
		}
		for _, name := range group.FindAllStringSubmatch(m.Hint, -1) {
			if regexp.MustCompile(m.Says).SubexpIndex(name[1]) < 0 {
				t.Errorf("the hint of %q has %s, which its pattern lacks", m.Name, name[0])
			}
		}
	}
}

// TestAMistakeIsNamedByItsWords: the exercise's own wrong answers come first, and a hint has the words of the failure.
func TestAMistakeIsNamedByItsWords(t *testing.T) {
	e := Exercise{Wrong: []Wrong{{Name: "own", Says: "is back", Lacks: "Owns"}, {Name: "swapped", Mistake: "owner and child are swapped"}}}
	const says = "ERROR\t{\"error\": \"Object default/web is already owned by another ConfigMap controller web\"}"
	for _, test := range []struct{ failure, source, name, hint string }{
		{says, "", "owner and child are swapped", "owned by another ConfigMap controller"},
		{"it is back\n" + says, "", "own", ""},
		{"it is back\n" + says, "Owns", "owner and child are swapped", ""},
		{"something else", "", "", ""},
	} {
		first := append(e.Recognise(test.failure, test.source), Wrong{})[0]
		if first.Name != test.name || !strings.Contains(first.Hint, test.hint) {
			t.Errorf("%s: %q, %q; want %q", test.failure, first.Name, first.Hint, test.name)
		}
	}
}

// TestAWriteThatChangesAFieldLacksNoComparison: of six writes, three changed the time in a message, and the API server
// stored nothing for the others, which came within the same second.
func TestAWriteThatChangesAFieldLacksNoComparison(t *testing.T) {
	const same = "\n  09:57:45.217 update mywebs.operator.k8s-summit.org/status plain 200 20ms same"
	const moved = "\n  09:57:45.239 update mywebs.operator.k8s-summit.org/status none 200 156ms moved"
	for failure, want := range map[string]string{
		"expected no write; but the operator sent 2 writes:" + same + same + "\nAfter that": "a write that changes nothing",
		"expected no write; but the operator sent 2 writes, and changed status.conditions[Available].message:" + moved + same +
			"\nAfter that": "a write that differs each time",
		"expected no write of configmaps; but the operator sent 2 writes:" + same + moved + "\nAfter that": "",
	} {
		first := append(recognise(mistakes, failure, ""), Wrong{})[0]
		if strings.Contains(failure, "changed") && !strings.Contains(first.Hint, "changes status.conditions[Available].message, although") {
			t.Errorf("the hint is %q", first.Hint)
		}
		if first.Name != want {
			t.Errorf("%q, want %q: %s", first.Name, want, failure)
		}
	}
}

// A shownMistake is a program with a mistake that a statement shows. Replace has the rest of what the program needs.
type shownMistake struct {
	Exercise, Mistake, Old, New, Says string
	Replace                           []Replace
}

func shownMistakes(t *testing.T) (all []shownMistake) {
	t.Helper()
	testkit.Must(t, strictyaml.Read(filepath.Join("testdata", "statements.yaml"), &all))
	return all
}

// TestAStatementShowsTheMistake: whatever else the failure says, the hint begins with the mistake, and has the place. All
// programs compile: go vet reports the errors of the compiler.
func TestAStatementShowsTheMistake(t *testing.T) {
	c := newCourse(t)
	compiled := c
	compiled.Work = t.TempDir()
	for n, p := range shownMistakes(t) {
		e := find(t, c, p.Exercise)
		solution, err := c.Files(e, e.Solution)
		testkit.Must(t, err)
		mine, err := Wrong{Replace: append(p.Replace, Replace{Old: p.Old, New: p.New})}.apply(e, solution)
		testkit.Must(t, err)
		testkit.Must(t, compiled.Module(e))
		testkit.Write(t, filepath.Join(compiled.Dir(e), fmt.Sprint(n), e.File), string(mine[e.File]))
		_, err = c.Put(e, mine)
		testkit.Must(t, err)
		r := Judgement{Own: []Result{{ID: "behaviour/x", Verdict: outcome.Failed, What: "there is no child\n" + p.Says + "\nexpected " + p.Mistake}}}
		testkit.Must(t, c.Judged(e, State{Current: e.ID, Passed: map[string]string{}}, c.Digest(e), r))
		s, err := c.State()
		testkit.Must(t, err)
		hint, _ := c.Hint(e, s)
		if !strings.Contains(hint, "("+p.Mistake+")") || !strings.Contains(hint, "    "+e.File+":") || len(c.Places(e, s, string(mine[e.File]))) != 1 {
			t.Errorf("%s: %+v\n%s\n%v", p.Mistake, s.Differs, hint, c.Places(e, s, string(mine[e.File])))
		}
	}
	vet := c.Judge.command(t.Context(), filepath.Join(compiled.Work, "04-controller-runtime"), "go", "vet", "-nilfunc", "./...")
	if out, err := vet.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestShapes has programs in several styles, with a mistake and without it.
func TestShapes(t *testing.T) {
	var all []struct{ Body, Shape string }
	testkit.Must(t, strictyaml.Read(filepath.Join("testdata", "shapes.yaml"), &all))
	for shape := range shapes {
		for _, p := range all {
			found := shaped(shape, map[string][]byte{"a.go": []byte("package a\n\nfunc f() { " + p.Body + " }\n")}, nil)
			if (len(found) > 0) != (shape == p.Shape) {
				t.Errorf("%s: %s is found: %+v, want %q", p.Body, shape, found, p.Shape)
			}
		}
	}
}

// TestTheReadersProgramRefutesAGuess: the failure is that of a known wrong answer, and the program is not.
func TestTheReadersProgramRefutesAGuess(t *testing.T) {
	c := newCourse(t)
	e := find(t, c, "04.4")
	solution, err := c.Files(e, e.Solution)
	testkit.Must(t, err)
	const failure = "expected no write; but the operator sent 1 write:\n  09:57:45.217 update mywebs/status web 200 20ms same\nAfter that"
	for old, want := range map[string]struct{ text, wrong, differs string }{
		"\tif equality.Semantic.DeepEqual(old, web.Status) {\n\t\treturn nil\n\t}\n": {"", "a write that changes nothing", ""},
		"\told := web.Status\n": {"\told := web.Status\n\tweb.Status.ReadyReplicas = -1\n", "", "web.Status.ReadyReplicas = -1"},
	} {
		mine, err := Wrong{Replace: []Replace{{Old: old, New: want.text}}}.apply(e, solution)
		testkit.Must(t, err)
		cause := e.cause(failure, mine, solution, nil)
		if text := e.sayDifferences(cause.Differs); cause.Wrong.Name != want.wrong || !strings.Contains(text, want.differs) {
			t.Errorf("%q: %q, %s", old, cause.Wrong.Name, text)
		}
	}
}

// TestACardNamesNoVaguePlace: of several differences, none shows a guess; and three calls do what the loop of the solution does.
func TestACardNamesNoVaguePlace(t *testing.T) {
	two := []difference.Difference{{Line: 1}, {Line: 2}}
	vague, one := Cause{Wrong: Wrong{Guess: true}, Differs: two}.place(), Cause{Wrong: Wrong{Guess: true}, Differs: two[:1]}.place()
	if loop := (Exercise{}).sayDifferences([]difference.Difference{{Other: "range all"}}); len(vague) > 0 || len(one) == 0 || loop != "" {
		t.Errorf("%v, %v, %s", vague, one, loop)
	}
}

// TestAProgramThatIsNotFinishedHasANudge: what it lacks is the exercise.
func TestAProgramThatIsNotFinishedHasANudge(t *testing.T) {
	c := newCourse(t)
	e := find(t, c, "04.5")
	solution, err := c.Files(e, e.Solution)
	testkit.Must(t, err)
	starter, err := c.Files(e, e.Starter)
	testkit.Must(t, err)
	mine := map[string][]byte{e.File: append(starter[e.File], "\nfunc unused() {}\n"...)}
	if cause := e.cause("expected another page; but it is the old one", mine, solution, starter); e.sayDifferences(cause.Differs) != "" {
		t.Errorf("%+v", cause)
	}
}

func TestADifferenceIsExplained(t *testing.T) {
	for want, d := range map[string]difference.Difference{"writes the status alone": {Other: "r.Status().Update(ctx, web)"},
		"0 does not wait": {Mine: "time.Duration(0)", Other: "8 * time.Second", Statement: "o.GracefulShutdownTimeout = new(time.Duration(0))"}} {
		if got := (Exercise{}).fact([]difference.Difference{d}); !strings.Contains(got, want) {
			t.Errorf("%+v: %q", d, got)
		}
	}
}
