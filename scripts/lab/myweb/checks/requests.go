package checks

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"example.com/operator-workshop/scripts/examine/ledger"
	"example.com/operator-workshop/scripts/examine/strictyaml"
	"example.com/operator-workshop/scripts/lab/myweb/impl"
	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

// Requests returns the check that counts the requests of ten MyWebs. A program without a budget passes, and gets its numbers.
func Requests() []suite.Check {
	return []suite.Check{{ID: "budget/ten", Title: "ten MyWebs need no more requests than budget.yaml records", Alone: true,
		Fast: true, Within: 4 * time.Minute, Run: withinBudget}}
}

const (
	// Creation and SteadyState are two of the phases in which the requests of ten MyWebs are counted.
	Creation    = "creation of 10"
	SteadyState = "steady state of 10"
	// counted is the number of MyWebs, and watched the time in steady state. silence is how long the operator must send
	// no requests until a phase counts as over.
	counted = 10
	watched = 5 * time.Second
	silence = time.Second
)

func withinBudget(t *suite.T) {
	each := func(do func(name string)) {
		for n := range counted {
			do(fmt.Sprint("web-", n))
		}
	}
	completed := func(name string) { t.Served(name, "is completed", time.Minute) }
	untilSilent(t)
	judged := map[string]map[string]int{}
	for _, phase := range []struct {
		name    string
		rollout bool
		do      func()
	}{
		{Creation, true, func() {
			each(func(name string) { t.Create(name, suite.Sample()) })
			each(completed)
			untilSilent(t)
		}},
		{"update of 10", true, func() {
			each(func(name string) { t.SetPage(name, "<h1>Changed</h1>") })
			each(completed)
			untilSilent(t)
		}},
		{SteadyState, false, func() { t.Pause(watched) }},
		{"restart of 10", false, func() {
			t.Must(t.Operator.Restart(t.Ctx), "restart the operator")
			untilSilent(t)
		}},
	} {
		mark, begin := t.Mark(), time.Now()
		phase.do()
		have, slow := map[string]int{}, phase.rollout && time.Since(begin) > quick+silence
		for _, e := range t.Fixture.Ledger.Entries(t.Operator.Requests(), ledger.Match{After: mark, Except: ledger.Housekeeping}) {
			if e.Namespace == "" || e.Namespace == t.Namespace {
				have[e.Verb+" "+e.FullResource()]++
			}
		}
		t.Counted(phase.name, have)
		judged[phase.name] = maps.Clone(have) // extra status writes during a slow rollout are not waste
		maps.DeleteFunc(judged[phase.name], func(kind string, _ int) bool { return slow && strings.HasSuffix(kind, "/status") })
	}
	t.ReadMemory()
	root, err := impl.Here()
	t.Must(err, "find the checkout")
	var budgets map[string]map[string]map[string]int
	t.Must(strictyaml.Read(filepath.Join(root, "scripts", "lab", "myweb", "budget.yaml"), &budgets), "read the budget")
	if may, ok := budgets[t.Operator.Impl.Name]; ok {
		for _, line := range over(judged, may) {
			t.Errorf("%s", line)
		}
	}
}

// untilSilent returns when the operator has sent no request for a while.
func untilSilent(t *suite.T) {
	t.Must(t.Fixture.Ledger.AwaitQuiet(t.Ctx, silence, t.Operator.Requests()), "wait until no request is sent")
}

// over names each count that is greater than that of the budget.
func over(have, may map[string]map[string]int) (lines []string) {
	for _, phase := range slices.Sorted(maps.Keys(have)) {
		for _, kind := range slices.Sorted(maps.Keys(have[phase])) {
			if n, most := have[phase][kind], may[phase][kind]; n > most {
				lines = append(lines, fmt.Sprintf("%s, %s: %d times, %d are in the budget", phase, kind, n, most))
			}
		}
	}
	return lines
}
