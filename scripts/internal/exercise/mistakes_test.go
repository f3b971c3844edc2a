package exercise

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"example.com/operator-workshop/scripts/internal/testkit"
)

// TestEachMistakeIsProved: a wrong answer of an exercise makes each mistake, and `make exercises-verify` proves that the
// mistake recognises it; or a failure was recorded. A hint has no group that its pattern lacks.
func TestEachMistakeIsProved(t *testing.T) {
	c := newCourse(t)
	group := regexp.MustCompile(`\$\{(\w+)\}`)
	recorded := testkit.Read(t, filepath.Join("testdata", "failures.yaml"))
	for n, m := range mistakes {
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
		name, hint := "", ""
		if some := e.Recognise(test.failure, test.source); len(some) > 0 {
			name, hint = some[0].Name, some[0].Hint
		}
		if name != test.name || !strings.Contains(hint, test.hint) {
			t.Errorf("%s: %q, %q; want %q", test.failure, name, hint, test.name)
		}
	}
}

// TestAWriteThatChangesAFieldLacksNoComparison: of six writes, three changed the time in a message, and the API server
// stored nothing for the others, which came within the same second.
func TestAWriteThatChangesAFieldLacksNoComparison(t *testing.T) {
	const same = "\n  09:57:45.217 update mywebs.operator.k8s-summit.org/status plain 200 20ms same"
	const moved = "\n  09:57:45.239 update mywebs.operator.k8s-summit.org/status none 200 156ms moved"
	for failure, want := range map[string]string{
		"expected no write; but the operator sent 2 writes:" + same + same + "\nAfter that": "a write without a comparison",
		"expected no write; but the operator sent 2 writes, and changed status.conditions[Available].message:" + moved + same +
			"\nAfter that": "a write that differs each time",
		"expected no write of configmaps; but the operator sent 2 writes:" + same + moved + "\nAfter that": "",
	} {
		name := ""
		if some := recognise(mistakes, failure, ""); len(some) > 0 {
			name = some[0].Name
			if strings.Contains(failure, "changed") && !strings.Contains(some[0].Hint, "changes status.conditions[Available].message, although") {
				t.Errorf("the hint is %q", some[0].Hint)
			}
		}
		if name != want {
			t.Errorf("%q, want %q: %s", name, want, failure)
		}
	}
}
