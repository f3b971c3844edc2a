package controller

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"k8s.io/component-base/metrics/legacyregistry"

	"example.com/operator-workshop/03-client-go-controller/internal/myweb"
)

// counted returns the value of myweb_sync_total by result, as a scrape would see it.
func counted(t *testing.T) map[string]float64 {
	t.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]float64{}
	for _, family := range families {
		if family.GetName() != "myweb_sync_total" {
			continue
		}
		for _, m := range family.GetMetric() {
			counts[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
		}
	}
	return counts
}

func TestSyncsAreCountedByResult(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"no error":      {nil, "success"},
		"a condition":   {&myweb.ConditionError{Reason: "A", Message: "a"}, "condition"},
		"a failure":     {errors.New("no answer"), "error"},
		"a wrapped one": {fmt.Errorf("apply: %w", &myweb.ConditionError{}), "condition"},
	} {
		t.Run(name, func(t *testing.T) {
			before := counted(t)
			observeSync(time.Now(), test.err)
			for result, count := range counted(t) {
				if added := count - before[result]; (added == 1) != (result == test.want) {
					t.Errorf("%s was counted %v times", result, added)
				}
			}
		})
	}
}
