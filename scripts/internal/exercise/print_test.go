package exercise

import (
	"slices"
	"strings"
	"testing"
)

func TestLinesAreCutBetweenWords(t *testing.T) {
	word := strings.Repeat("x", 48)
	for name, test := range map[string]struct {
		text string
		want []string
	}{
		"fits":            {"a b", []string{"a b"}},
		"at a space":      {word + " " + word[1:] + " " + word, []string{word + " " + word[1:], word}},
		"JSON":            {`{"a":"` + word + `","b":"` + word + `"}`, []string{`{"a":"` + word + `",`, `"b":"` + word + `"}`}},
		"a path":          {word + word[1:] + "/" + word, []string{word + word[1:] + "/", word}},
		"a single word":   {word + word + word, []string{word + word, word}},
		"not in a rune":   {strings.Repeat("ü", 100), []string{strings.Repeat("ü", 96), "üüüü"}},
		"an empty line":   {"a\n\nb", []string{"a", "", "b"}},
		"spaces between":  {word + strings.Repeat(" ", 60) + word, []string{word, word}},
		"exactly as long": {word + word, []string{word + word}},
	} {
		var out strings.Builder
		wrapped(&out, "  | ", test.text)
		lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		for n, line := range lines {
			lines[n] = strings.TrimPrefix(strings.TrimPrefix(line, "  |"), " ")
		}
		if !slices.Equal(lines, test.want) {
			t.Errorf("%s: %q, want %q", name, lines, test.want)
		}
	}
}

func TestALogThatRepeatsItself(t *testing.T) {
	v := Verdict{Check: "c", Verdict: "failed", Evidence: []string{"PATCH web", "2026-11-22T19:35:51Z\tERROR\tno",
		"2026-11-22T19:35:52Z\tERROR\tno", "E1122 19:35:52.123456 no", "PATCH web"}}
	var brief, all strings.Builder
	v.Print(&brief, false)
	v.Print(&all, true)
	if got := brief.String(); strings.Count(got, "ERROR") != 1 || !strings.Contains(got, "19:35:51Z\tERROR\tno (2 times)") ||
		strings.Count(got, "PATCH web\n") != 2 {
		t.Errorf("in brief:\n%s", got)
	}
	if strings.Count(all.String(), "ERROR") != 2 || strings.Contains(all.String(), "times") {
		t.Errorf("VERBOSE=1:\n%s", all.String())
	}
}
