package page

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestADiffHasNoWrongLineNumbers(t *testing.T) {
	var from []string
	for i := range 60 {
		from = append(from, fmt.Sprintf("line %d", i))
	}
	to := slices.Insert(slices.Clone(from), 50, "z")
	to = slices.Insert(slices.Insert(to, 14, "y"), 10, "x")
	diff := Diff("a", "b", strings.Join(from, "\n")+"\n", strings.Join(to, "\n")+"\n")
	if strings.Count(diff, "\n@@\n") != 2 || strings.Contains(diff, "@@ ") {
		t.Errorf("want two hunks without numbers:\n%s", diff)
	}
}
