package examine

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
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
	all := []string{".+-(becomes(-.+)?|is-removed)"} // a change of a field begins with its name; "" and [] leave nothing
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

// TestJudgementsOfTheGallery reads each judgement as the page describes it, with a line of the source or a public thread,
// and compares the page's table with their number.
func TestJudgementsOfTheGallery(t *testing.T) {
	page, err := os.ReadFile("gallery/README.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("gallery/*/judged.yaml")
	if err != nil {
		t.Fatal(err)
	}
	rows := rowsOfTheGallery(t, string(page))
	if len(files) != len(rows)-1 {
		t.Errorf("the table has %d operators and a row for all, and the gallery has %d", len(rows)-1, len(files))
	}
	words := []string{"true", "choice", "false", "unknown"}
	place := regexp.MustCompile(`[\w-]+\.\w+:\d+|https://`)
	sum := make([]int, len(rows["all"]))
	for _, file := range files {
		b, err := ReadBaseline(file)
		if err != nil {
			t.Fatal(err)
		}
		judged := map[string]int{}
		for _, a := range b.Accepted {
			word, reason, _ := strings.Cut(a.Reason, ": ")
			judged[word]++
			if !slices.Contains(words, word) || !place.MatchString(reason) {
				t.Errorf("%s: %s needs one of %v, and a place as file.go:7 or https://…: %s", file, a.ID, words, a.Reason)
			}
		}
		name := filepath.Base(filepath.Dir(file))
		row := rows[name]
		if len(row) != len(sum) {
			t.Fatalf("the table has no complete row for %s: %v", name, row)
		}
		for i, word := range words {
			if row[4+i] != judged[word] {
				t.Errorf("%s has %d judgements %q, and the table has %d", file, judged[word], word, row[4+i])
			}
		}
		if failed := row[1]; failed > len(b.Accepted) {
			t.Errorf("%s has %d judgements, and %d findings failed", file, len(b.Accepted), failed)
		}
		for i := range sum {
			sum[i] += row[i]
		}
	}
	if !slices.Equal(sum, rows["all"]) {
		t.Errorf("the columns sum up to %v, and the last row has %v", sum, rows["all"])
	}
}

// rowsOfTheGallery are the numbers of the table by operator: passed, failed, late, skipped, true, choice, false, unknown.
func rowsOfTheGallery(t *testing.T, page string) map[string][]int {
	t.Helper()
	rows := map[string][]int{}
	row := regexp.MustCompile("(?m)^\\| `?([a-z-]+)`?[^|]*\\|[^|]*\\|[^|]*((?:\\| *\\d+ *){8})\\|")
	for _, m := range row.FindAllStringSubmatch(page, -1) {
		for _, number := range strings.Fields(strings.ReplaceAll(m[2], "|", " ")) {
			n, err := strconv.Atoi(number)
			if err != nil {
				t.Fatal(err)
			}
			rows[m[1]] = append(rows[m[1]], n)
		}
	}
	return rows
}
