package exercise

import (
	"strings"
	"testing"
)

func TestAnUnknownExerciseNamesThoseOfItsChapter(t *testing.T) {
	all := []Exercise{{ID: "01.1"}, {ID: "05.1"}, {ID: "05.9"}, {ID: "06.3"}}
	for id, want := range map[string]string{"05.10": "05.1 to 05.9", "5.10": "05.1 to 05.9", "5": "05.1 to 05.9",
		"05": "05.1 to 05.9", "x": "01.1 to 06.3"} {
		if _, err := Find(all, id); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", id, err, want)
		}
	}
}
