package checks

import (
	"slices"
	"testing"
)

func TestBudgetMayNotRise(t *testing.T) {
	type counts = map[string]map[string]int
	may := counts{"creation of 10": {"apply configmaps": 10, "update mywebs/status": 20}}
	for name, test := range map[string]struct {
		have counts
		want []string
	}{
		"fewer":      {counts{"creation of 10": {"apply configmaps": 10, "update mywebs/status": 19}}, nil},
		"more":       {counts{"creation of 10": {"apply configmaps": 11}}, []string{"creation of 10, apply configmaps: 11 times, 10 are in the budget"}},
		"a new kind": {counts{"creation of 10": {"get secrets": 1}}, []string{"creation of 10, get secrets: 1 times, 0 are in the budget"}},
	} {
		if got := over(test.have, may); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
}
