package exercise

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"example.com/operator-workshop/scripts/examine/strictyaml"
	"example.com/operator-workshop/scripts/internal/difference"
	"example.com/operator-workshop/scripts/internal/testkit"
)

// TestMistakesInRecordedFailures: the failures of wrong answers, as the lab reported them, are recognised without a control
// plane. A failure with the name of a mistake is of a program that no exercise has. No known wrong answer refutes itself.
func TestMistakesInRecordedFailures(t *testing.T) {
	c := newCourse(t)
	var recorded map[string]string // the failure by exercise and wrong answer
	testkit.Must(t, strictyaml.Read(filepath.Join("testdata", "failures.yaml"), &recorded))
	for _, e := range c.All {
		solution, err := c.Files(e, e.Solution)
		testkit.Must(t, err)
		for _, w := range e.Wrong {
			name, known := e.ID+" "+w.Name, w
			files, err := w.apply(e, solution)
			testkit.Must(t, err)
			if w.Mistake != "" {
				known = mistakes[slices.IndexFunc(mistakes, func(m Wrong) bool { return m.Name == w.Mistake })]
			}
			all := difference.Of(files, solution, nil)
			if same, refuted := e.compare(known, all, solution); refuted || len(all) > 0 && !same {
				t.Errorf("%s: same %t, refuted %t by %+v", name, same, refuted, all)
			}
			if w.Mistake == "" {
				continue
			}
			some := e.Recognise(recorded[name], source(files))
			if len(some) == 0 || some[0].Name != w.Mistake || strings.Contains(some[0].Hint, "${") {
				t.Errorf("%s: %+v, want %q", name, some, w.Mistake)
			}
			delete(recorded, name)
		}
	}
	for name, failure := range recorded {
		if some := recognise(mistakes, failure, ""); len(some) == 0 || some[0].Name != name {
			t.Errorf("%q is neither a wrong answer of an exercise nor a mistake: %+v", name, some)
		}
	}
}
