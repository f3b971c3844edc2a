package window

import (
	"errors"
	"net/http"

	"example.com/operator-workshop/scripts/examine/loop"
	"example.com/operator-workshop/scripts/internal/exercise"
)

// A Comparison has two runs of a check, after the act of a user after which they differ.
type Comparison struct {
	Check string `json:"check"`
	// Passed is set when the reader's run passed.
	Passed bool `json:"passed,omitempty"`
	// Act describes the act.
	Act string `json:"act"`
	// Run is the reader's run, Solution that of the solution.
	Run      []Step `json:"run"`
	Solution []Step `json:"solution"`
	// Extra and Missing are the numbers of the first difference in each run; 0 when there is none.
	Extra   int `json:"extra,omitempty"`
	Missing int `json:"missing,omitempty"`
	// Away is the reason for which there are no two runs.
	Away string `json:"away,omitempty"`
}

// A Step is an arrow, with the owners of the object that it created.
type Step struct {
	Arrow
	New []string `json:"new,omitempty"`
}

// comparison answers with the reader's last run of a check and the solution's run of it. Until the
// command has recorded the solution's run, the answer has no runs.
func (s *Server) comparison(w http.ResponseWriter, r *http.Request) {
	e, err := exercise.Find(s.Course.All, r.PathValue("source"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	compared, mine, solution, err := s.Course.Compare(r.Context(), e)
	switch {
	case errors.Is(err, exercise.ErrNoRun):
		answer(w, Comparison{Away: err.Error()}) // the tab asks before it runs the command
		return
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	said := s.speaking(r)
	steps := func(records []loop.Record, namespace string) []Step {
		all, t := []Step{}, describer{spoken: said, namespace: namespace}
		for _, one := range records {
			all = append(all, Step{t.arrow(one), one.OwnersOfNew()})
		}
		return all
	}
	answer(w, Comparison{Check: mine.Check, Passed: mine.Passed, Act: said.exercises.SayWhole(loop.Short(compared.Act, mine.Namespace)),
		Run: steps(compared.Run, mine.Namespace), Solution: steps(compared.Other, solution.Namespace),
		Extra: compared.Extra, Missing: compared.Missing})
}
