package mutant

import (
	"strings"
	"testing"
)

func TestWhatIsNoMutant(t *testing.T) {
	const good = "Bug: a\nOf: 04\nCaught-by: x y\n\ndiff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n"
	m, err := parse("m", good)
	if err != nil || m.Of != "04" || len(m.CaughtBy) != 2 || len(m.Files()) != 1 || m.Files()[0] != "f" {
		t.Errorf("got %+v, %v", m, err)
	}
	for text, want := range map[string]string{
		strings.Replace(good, "Of:", "For:", 1):    `"For" is not Bug`,
		strings.Replace(good, "Bug: a\n", "", 1):   "needs Bug",
		"Because: (\n" + good:                      "missing closing",
		"Bug: a\nOf: 04\nCaught-by: x\n\nno diff:": `"no diff:" is not Bug`,
		"Bug: a\nOf: 04\nCaught-by: x\n":           "and a diff",
	} {
		if _, err := parse("m", text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q for %q, got %v", want, text, err)
		}
	}
}
