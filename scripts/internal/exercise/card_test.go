package exercise

import (
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"example.com/operator-workshop/scripts/examine/outcome"
	"example.com/operator-workshop/scripts/internal/testkit"
)

// noOwner is the outcome of 04.3 without an owner reference: four failures with one cause.
var noOwner = Judgement{Kept: true, Built: time.Second, Took: 3 * time.Second, Own: []Result{
	{ID: "behaviour/05-deleted-configmap", Title: "a deleted ConfigMap comes back, once", Verdict: "failed",
		What: `expected that the ConfigMap is back; but the operator sends nothing any more, and configmaps "web" not found`,
		Did:  "a user deleted ConfigMap web", Evidence: []string{"requests of the operator:", "12:00:00.000 create configmaps web 201"},
		Reaction: "After that, the operator got the event ConfigMap web DELETED and sent no request."},
	{ID: "behaviour/05-deleted-deployment", Verdict: "failed", What: "expected that the Deployment is back; but it is not"},
	{ID: "behaviour/05-deleted-service", Verdict: "failed", What: "expected that the Service is back; but it is not"},
	{ID: "behaviour/09-no-create", Verdict: "passed"},
}, Earlier: []Result{{ID: "behaviour/01-pods-apart", Verdict: "failed", What: "no"}}}

func TestFourFailuresAreOneCard(t *testing.T) {
	e := Exercise{ID: "04.3", Chapter: "04-controller-runtime", File: "main.go"}
	var out strings.Builder
	noOwner.Print(&out, e, false)
	const want = `  failed  behaviour/05-deleted-configmap   a deleted ConfigMap comes back, once
  Done:        a user deleted ConfigMap web
  Expected:    the ConfigMap is back
  Happened:    the operator sends nothing any more, and configmaps "web" not found
               After that, the operator got the event ConfigMap web DELETED and sent no request.
  3 more checks failed; they often follow from the first.
  Where:       work/04-controller-runtime/main.go
  Hint:        make hint
  Watch it:    make watch EX=04.3
  All details: make check VERBOSE=1
  (built in 1.0 s, judged in 3.0 s)
`
	if out.String() != want {
		t.Errorf("%s\nwant\n%s", &out, want)
	}
	card := noOwner.Card("", nil)
	lines := e.Card(&card).Lines
	if last := lines[len(lines)-1].Text; last != "3 more checks failed; they often follow from the first." {
		t.Errorf("the last line of the card is %q", last)
	}
	out.Reset()
	noOwner.Print(&out, e, true)
	for _, more := range []string{"create configmaps web 201", "the Service is back", "behaviour/01-pods-apart"} {
		if !strings.Contains(out.String(), more) {
			t.Errorf("the details lack %q:\n%s", more, &out)
		}
	}
}

// TestTheFailureOfAnEarlierCheckHasACard: the exercise's own check is shown as passed, and what it broke has a card.
func TestTheFailureOfAnEarlierCheckHasACard(t *testing.T) {
	r := Judgement{Own: []Result{{ID: "a", Verdict: "passed"}}, Earlier: []Result{{ID: "b", Verdict: "passed"},
		{ID: "c", Verdict: "failed", Title: "the title", What: "the sum is 0\nand more\nand more\nand more\nand more"}}}
	var out strings.Builder
	busy := Judgement{Own: r.Own, Earlier: []Result{{ID: "c", Verdict: "failed", What: "expected x; but not within 24s: update x 200 same"}}}.Card("", nil).Lines
	if got := busy[len(busy)-2:]; got[0].Text != effects["same"] || got[1] != ofBusy {
		t.Errorf("the card of a check whose time is over ends with %v", got)
	}
	r.Print(&out, Exercise{ID: "04.3"}, false, CardLine{"Look at", "main.go:5"})
	if last := r.Card("", nil).Lines; last[len(last)-1] != ofBefore {
		t.Errorf("the card ends with %v", last)
	}
	for _, want := range []string{"passed  a", "failed  c", "Expected:    the title", "Happened:    the sum is 0\n",
		"Earlier:     The exercise's own check passed. This check is of an exercise before", "Look at:     main.go:5"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, &out)
		}
	}
	if strings.Contains(out.String(), "more checks") || strings.Count(out.String(), "and more") != 3 {
		t.Errorf("too much:\n%s", &out)
	}
}

// TestTheCardHasTheErrorOfAProgramThatEnded: without the lines of the program, the outcome explains nothing.
func TestTheCardHasTheErrorOfAProgramThatEnded(t *testing.T) {
	const log = `2026-11-28T12:00:00Z	ERROR	no	{"controller": "x", "reconcileID": "1", "error": "there is \"x\""}`
	for reason, want := range map[string]string{
		"expected that it starts; but the operator ended with code 1. Its last lines:\n  a\n  b\n  c\n  " + log:          "the operator ended with code 1. Its last lines:\nb\nc\n2026-11-28T12:00:00Z\tERROR\tno\terror: there is \"x\"",
		"expected that it starts; but the operator ended. Its first error:\n  error: a\nIts last lines:\n  b\n  c":       "the operator ended. Its first error:\nerror: a",
		"expected no write; but the operator sent 2 writes:\n  create a\n  create b":                                     "the operator sent 2 writes",
		"expected no write; but the operator sent 2 writes:\n  09:57:45.217 update mywebs web 200 20ms same\n  create b": "the operator sent 2 writes\nIts first request: update mywebs web 200 same",
		"expected that it stops; but it does not: 30 s are over: \n  create a":                                           "it does not: 30 s are over",
	} {
		if _, got := sentences(Result{What: reason}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestTheCapstoneNamesItsFilesAndWhatFollows: the CRD is made from the types, and no exercise follows.
func TestTheCapstoneNamesItsFilesAndWhatFollows(t *testing.T) {
	var out strings.Builder
	Judgement{Own: []Result{{ID: "crd", Verdict: "failed"}}}.Print(&out, Capstone, false)
	if !strings.Contains(out.String(), "Where:       work/capstone/types.go\n") {
		t.Errorf("%s", &out)
	}
	out.Reset()
	Judgement{Own: []Result{{ID: "drift", Verdict: "failed"}}}.Print(&out, Capstone, false)
	if !strings.Contains(out.String(), "Where:       work/capstone/main.go\n") {
		t.Errorf("%s", &out)
	}
	c := newCourse(t)
	if line := c.NextLine(Capstone, State{}); !strings.HasPrefix(line, "Next: make examine ") {
		t.Errorf("after the capstone: %q", line)
	}
	if line := c.NextLine(find(t, c, "04.2"), State{Exercise: "04.3"}); !strings.HasPrefix(line, "Next: 04.3 ") {
		t.Errorf("after 04.2: %q", line)
	}
	listed := Listed(c.All)
	before := listed[slices.IndexFunc(listed, func(e Exercise) bool { return e.ID == CapstoneID })-1].ID
	if before != SmallCapstone || !strings.Contains(Capstone.Story, before) {
		t.Errorf("the capstone follows %s, and its story is %q", before, Capstone.Story)
	}
	w, _ := Capstone.named("a write that the API server refuses", `"error": "write it: Note.example.com \"a\" is invalid: spec: no \"x\""}`)
	if !strings.Contains(w.Hint, `Note a that`) || !strings.Contains(w.Hint, `spec: no "x". Each`) {
		t.Errorf("the hint is %q", w.Hint)
	}
	all := []Result{{ID: "crd", Verdict: "passed"}, {ID: "drift", Verdict: "passed"}, {ID: "restart", Verdict: "passed"}}
	if v := counting(all, Capstone); v.ID != "drift" {
		t.Errorf("the loop of a pass is that of %s", v.ID)
	}
	if all[2].Verdict = "failed"; counting(all, Capstone).ID != "restart" {
		t.Error("the loop of a failure is not that of the failed check")
	}
}

// TestAMessageIsShownOnce: controller-gen prints a syntax error for each of its generators.
func TestAMessageIsShownOnce(t *testing.T) {
	err := compileError("types.go:1:2: expected '}'\ntypes.go:3:4: expected ';'\ntypes.go:1:2: expected '}'\n", "work/capstone", errCompile)
	if strings.Count(err.Error(), "expected '}'") != 1 || !strings.Contains(err.Error(), "types.go:3:4") {
		t.Error(err)
	}
}

func TestTheCardOfAPass(t *testing.T) {
	r := Judgement{Own: []Result{{ID: "a", Title: "a child comes back", Verdict: "passed"}},
		Loop: []string{"12:00:00.000 ConfigMap web DELETED delivered → 3 ms → create configmaps web 201 moved"}}
	want := []CardLine{{"Proved", "a child comes back"},
		{"Loop", "ConfigMap web DELETED delivered → 3 ms → create configmaps web 201 moved"}, {"Next", "04.4 A status"}}
	if c := r.Card("04.4 A status", nil); !c.Passed || !slices.Equal(c.Lines, want) {
		t.Errorf("%+v", c)
	}
	var out strings.Builder
	r.Own[0].ID, r.Loop[0] = strings.Repeat("a", 30)+strings.Repeat(" b", 10), r.Loop[0]+strings.Repeat(" c", 20)
	r.Print(&out, Exercise{ID: "04.3"}, false)
	for line := range strings.Lines(out.String()) {
		if utf8.RuneCountInString(line) > outcome.Columns+1 {
			t.Errorf("it is too wide: %s", line)
		}
	}
}

// TestAPassNamesWhatItFixed: a check that failed in the run before is marked, also when it belongs to an earlier exercise.
func TestAPassNamesWhatItFixed(t *testing.T) {
	own := Result{ID: "a", Title: "a child comes back", Verdict: "passed"}
	earlier := Result{ID: "b", Title: "two MyWebs never share a pod", Verdict: "passed"}
	r := Judgement{Own: []Result{own}, Earlier: []Result{earlier, {ID: "c", Title: "no write", Verdict: "passed"}}}
	before := CardLine{"Proved", "the 2 checks before it passed, too"}
	for name, test := range map[string]struct {
		last *Card
		want []CardLine
	}{
		"no run before":        {nil, []CardLine{{"Proved", own.Title}, before}},
		"its own check failed": {&Card{Check: "a: a child comes back"}, []CardLine{{"Fixed", own.Title}, before}},
		"an earlier check failed": {&Card{Check: "b: two MyWebs never share a pod"},
			[]CardLine{{"Proved", own.Title}, {"Fixed", earlier.Title}, before}},
		"the run before passed": {&Card{Check: "a: a child comes back", Passed: true}, []CardLine{{"Proved", own.Title}, before}},
		"it did not compile":    {&Card{}, []CardLine{{"Proved", own.Title}, before}},
	} {
		if diff := cmp.Diff(test.want, r.Card("", test.last).Lines); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestTheCardQuotesTheErrorThatTheOperatorLogged: an error that is logged and dropped explains more than its effect.
func TestTheCardQuotesTheErrorThatTheOperatorLogged(t *testing.T) {
	const happened = "it is not back\nAfter that, the operator sent no request."
	words := func(lines ...string) []string { return append([]string{"words of the operator:"}, lines...) }
	const swapped = "2026-11-29T09:19:46Z\tERROR\tCannot set the owner\t{\"controller\": \"myweb\", \"namespace\": \"ns\", \"error\": " +
		"\"Object ns/web is already owned by another ConfigMap controller web\"}"
	for name, test := range map[string]struct {
		evidence       []string
		reaction, want string
	}{
		"swapped arguments": {evidence: words("2026-11-29T09:19:45Z\tINFO\tReconciled\t{\"namespace\": \"ns\"}", swapped,
			"2026-11-29T09:19:47Z\tINFO\tReconciled\t{\"namespace\": \"ns\"}"),
			want: "\nThe operator logged: “Object web is already owned by another ConfigMap controller web”"},
		"the last of two": {evidence: words(swapped, `E1129 09:19:47.123456       1 main.go:12] "Failed" err="no \"web\""`),
			want: "\nThe operator logged: “no \"web\"”"},
		"a message without an error": {evidence: words("2026-11-29T09:19:46Z\tERROR\tIt is lost"),
			want: "\nThe operator logged: “It is lost”"},
		"JSON":        {evidence: words(`{"level":"error","ts":1,"msg":"x","error":"it is lost"}`), want: "\nThe operator logged: “it is lost”"},
		"slog":        {evidence: words(`time=2026-11-29T09:19:46Z level=ERROR msg=x err="it is lost"`), want: "\nThe operator logged: “it is lost”"},
		"no error":    {evidence: words("2026-11-29T09:19:46Z\tINFO\tno error", `the "error": "x" of a print`)},
		"known words": {evidence: words(swapped), reaction: "\nThen: 500: Object web is already owned by another ConfigMap controller web"},
		"a long error": {evidence: words("x\tERROR\t" + strings.Repeat("long ", 40)),
			want: "\nThe operator logged: “" + strings.Repeat("long ", 23) + "long…”"},
	} {
		v := Result{What: "expected that it is back; but it is not back", Reaction: "After that, the operator sent no request." +
			test.reaction, Evidence: test.evidence, Namespace: "ns"}
		lines := failureLines(v)
		if diff := cmp.Diff(happened+test.reaction+test.want, lines[len(lines)-1].Text); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestTheCardQuotesNoUnrelatedError: checks share one operator, and a check has several objects.
func TestTheCardQuotesNoUnrelatedError(t *testing.T) {
	const failed = "x\tERROR\tReconciler error\t"
	const mine = failed + `{"namespace": "behaviour-09-no-create-abcde", "name": "foreground", "error": "it is lost"}`
	const other = failed + `{"namespace": "behaviour-09-no-create-abcde", "name": "background", "error": "it is late"}`
	const orphan = failed + `{"namespace": "behaviour-09-no-create-abcde", "name": "orphan", "error": "mywebs.x.org \"orphan\" not found"}`
	const elsewhere = failed + `{"error": "configmaps is forbidden in behaviour-05-deleted-configmap-2p8d5/web"}`
	const conflict = failed + `{"name": "orphan", "error": "Operation cannot be fulfilled: the object has been modified"}`
	const deleted = "a user removed the finalizers of the deleted MyWebs"
	for name, test := range map[string]struct {
		did, want string
		evidence  []string
	}{
		"another check":        {did: deleted, evidence: []string{elsewhere}},
		"a MyWeb that is gone": {did: deleted, evidence: []string{orphan}},
		"a MyWeb that must be there": {did: "a user created MyWeb orphan", evidence: []string{orphan},
			want: `The operator logged: “mywebs.x.org "orphan" not found”`},
		"its object":       {did: deleted, evidence: []string{mine, other, orphan, elsewhere}, want: "The operator logged: “it is lost”"},
		"an object beside": {did: deleted, evidence: []string{other, elsewhere}, want: "The operator logged: “it is late”"},
		"one conflict":     {did: deleted, evidence: []string{conflict, conflict}},
		"conflicts without end": {did: deleted, evidence: []string{conflict, conflict, conflict},
			want: "The operator logged: “Operation cannot be fulfilled: the object has been modified”"},
		"without namespace": {did: deleted, evidence: []string{"x\tERROR\tIt is late", elsewhere}, want: "The operator logged: “It is late”"},
	} {
		v := Result{Did: test.did, Namespace: "behaviour-09-no-create-abcde", Evidence: test.evidence,
			What: `expected that configmaps foreground is gone; but not within 20s: it is there`}
		if got := logged(v, ""); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// TestTheHintsOfAnotherFailureBeginAnew: the same failure continues the ladder of hints, whatever its numbers are.
func TestTheHintsOfAnotherFailureBeginAnew(t *testing.T) {
	c := newCourse(t)
	e := find(t, c, "04.3")
	failure := func(check, reason string) Judgement {
		return Judgement{Own: []Result{{ID: check, Verdict: "failed", What: reason}}}
	}
	for _, step := range []struct {
		what   string
		report Judgement
		anew   bool
	}{
		{"the first failure", failure("a", "expected that it is back; but not within 20s"), true},
		{"the same failure", failure("a", "expected that it is back; but not within 21s"), false},
		{"another expectation", failure("a", "expected the children; but they are not there"), true},
		{"another check", failure("b", "expected the children; but they are not there"), true},
		{"a program that does not compile", Judgement{Compile: errCompile}, true},
	} {
		s, err := c.State()
		testkit.Must(t, err)
		s.Take(e)
		s.Hints = 3
		testkit.Must(t, c.Judged(e, s, c.Digest(e), step.report))
		after, err := c.State()
		testkit.Must(t, err)
		if (after.Hints == 0) != step.anew || after.Card == nil || after.Card.Passed {
			t.Errorf("%s: %d hints were shown, the card is %+v", step.what, after.Hints, after.Card)
		}
	}
}

// TestAFailureIsShownBeforeTheOtherChecks: the window has the card while the earlier checks still run; a pass is only
// shown when they have passed, too.
func TestAFailureIsShownBeforeTheOtherChecks(t *testing.T) {
	c := newCourse(t)
	e := find(t, c, "04.3")
	for _, own := range [][]Result{noOwner.Own, {{ID: "a", Verdict: "passed"}}} {
		testkit.Must(t, c.ShowFailure(e, own))
		s, err := c.State()
		testkit.Must(t, err)
		if s.Card == nil || s.Card.Passed || !strings.HasPrefix(s.Card.Check, "behaviour/05-deleted-configmap") {
			t.Errorf("the card is %+v", s.Card)
		}
	}
}

// TestTheCardComesFirst: the lab reports checks in the order of their ends. The card needs all verdicts of the exercise's
// own check, or those up to the first failure.
func TestTheCardComesFirst(t *testing.T) {
	for want, test := range map[string]struct {
		arrive []string
		failed string
	}{
		"a b c": {arrive: []string{"earlier", "b", "a", "c"}},
		"a b":   {arrive: []string{"c", "b", "a"}, failed: "b c"},
		"a":     {arrive: []string{"b", "a"}, failed: "a b"},
		"":      {arrive: []string{"b", "c"}, failed: "b"},
	} {
		var got []string
		c, r := Course{Known: func(all []Result) {
			for _, v := range all {
				got = append(got, v.ID)
			}
		}}, Judgement{}
		each := c.known([]string{"a", "b", "c"}, time.Now(), &r)
		for n, check := range test.arrive {
			if len(got) > 0 {
				t.Errorf("%v: after %v there is a card: %v", test.arrive, test.arrive[:n], got)
			}
			v := Result{ID: check, Verdict: outcome.Passed}
			if strings.Contains(test.failed, check) {
				v.Verdict = outcome.Failed
			}
			each("reader", v)
		}
		each("reader", Result{ID: "c", Verdict: outcome.Skipped}) // at most one card
		if strings.Join(got, " ") != want || r.shown != (want != "") || (r.First > 0) != r.shown {
			t.Errorf("%v: %v, %+v", test.arrive, got, r)
		}
	}
}

// TestAFailureOfTheOwnCheckHidesTheOthers: a hint needs the same words whether the checks before it ran or not.
func TestAFailureOfTheOwnCheckHidesTheOthers(t *testing.T) {
	bad := func(check string) []Result { return []Result{{ID: check, Verdict: outcome.Failed}} }
	good := []Result{{ID: "own", Verdict: outcome.Passed}}
	for want, r := range map[string]Judgement{
		"own: failed": {Own: bad("own"), Earlier: bad("earlier")}, "earlier: failed": {Own: good, Earlier: bad("earlier")}, "": {Own: good},
	} {
		if got := r.Failure(); strings.TrimSpace(got) != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestTheNumberOfTheCheck(t *testing.T) {
	for want, test := range map[string]struct {
		known  int
		checks []string
	}{
		"running check 1 of 3":           {0, []string{"a", "b", "c"}},
		"running check 3 of 3":           {3, []string{"a", "b", "c"}},
		"running the checks, 3 are done": {3, []string{"behaviours"}},
	} {
		if got := checking(test.known, []Job{{Checks: test.checks}}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
