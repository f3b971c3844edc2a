package examine

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestIDsOfAcceptedFailures compares the ids of the gallery and of the baselines with the texts of the code. A title that
// changes leaves an id that no finding has.
func TestIDsOfAcceptedFailures(t *testing.T) {
	titles := titlesOfTheCode(t)
	for _, pattern := range []string{"gallery/*/judged.yaml", "ci/*-baseline.yaml", "../lab/examine/*-baseline.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			b, err := ReadBaseline(file)
			if err != nil {
				t.Error(err)
			}
			for _, a := range b.Accepted {
				if !titles.MatchString(a.ID) {
					t.Errorf("%s: no finding has the id %s", file, a.ID)
				}
			}
		}
	}
	for _, id := range []string{"drift/what-others-add-stays", "restart/a-restarted-operator-writes"} {
		if titles.MatchString(id) {
			t.Errorf("the code has no title for %s", id)
		}
	}
}

// titlesOfTheCode matches an id whose title is a text of the code. In a text, %s and %d stand for any name, and another
// text can follow a blank at the end.
func titlesOfTheCode(t *testing.T) *regexp.Regexp {
	t.Helper()
	all := []string{".+-(becomes-.+|is-removed)"} // a change of a field begins with its name
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		code, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, text := range regexp.MustCompile(`"(?:%d )?[A-Za-z][^"\n]{11,}"`).FindAllString(string(code), -1) {
			var parts []string
			for _, part := range regexp.MustCompile("%[sd]|(?: \"$)").Split(text, -1) {
				parts = append(parts, regexp.QuoteMeta(strings.TrimPrefix(idOf("", part), "/")))
			}
			all = append(all, strings.Join(parts, ".+"))
		}
	}
	return regexp.MustCompile(`^[a-z-]+/(recovers-from-)?(` + strings.Join(all, "|") + ")$")
}
