package exercise

import (
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"example.com/operator-workshop/scripts/examine/outcome"
	"example.com/operator-workshop/scripts/internal/translation"
)

// reflowed joins the lines of each paragraph of a text; lines that are indented stay as they are.
func reflowed(text string) string {
	var lines []string
	isProse := func(line string) bool { return line != "" && strings.TrimLeft(line, " \t") == line }
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		if last := len(lines) - 1; last >= 0 && isProse(line) && isProse(lines[last]) {
			lines[last] += " " + line
		} else {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// clock matches the time at the beginning of a line of the loop.
var clock = regexp.MustCompile(`^\d\d:\d\d:\d\d\.\d{3} +`)

// Print writes the result of an examination, and where to look. The failure of an earlier check has the lines of more.
func (r Judgement) Print(w io.Writer, e Exercise, verbose bool, more ...CardLine) {
	for _, note := range r.Notes {
		outcome.Wrap(w, "", e.said.Say(note))
	}
	if r.Compile != nil {
		outcome.Wrap(w, "", e.said.Say(r.Compile.Error()))
		return
	}
	if !r.shown {
		e.PrintOwn(w, r.Own, verbose)
	}
	if bad := failed(r.Earlier); len(bad) > 0 && (verbose || len(failed(r.Own)) == 0) {
		e.PrintOwn(w, bad, verbose, append([]CardLine{ofEarlier(bad[0])}, more...)...)
	}
	if r.Passed() {
		if len(r.Earlier) > 0 {
			fmt.Fprintln(w, " ", e.Sayf(checksBefore, len(r.Earlier)))
		}
		r.printLoop(w, e)
		fmt.Fprintln(w, e.Sayf("%s is done (%s).", e.ID, r.times(e)))
		return
	}
	r.printHelp(w, e)
}

// printHelp writes what a reader can do after a failure.
func (r Judgement) printHelp(w io.Writer, e Exercise) {
	if more := len(failed(r.Own)) + len(failed(r.Earlier)) - 1; more > 0 {
		outcome.Wrap(w, "  ", e.moreFailed(more))
	}
	where := e.Path()
	if bad := failed(r.Own); len(bad) > 0 && bad[0].ID == "crd" {
		where = filepath.Join(filepath.Dir(where), "types.go") // the CRD is made from it
	}
	if IsBug(e.ID) {
		where = "work/bug; `make bug` says in which order. `make solution` shows the fault."
	}
	help := []CardLine{{translation.Mark("Where"), where}, {translation.Mark("Hint"), "make hint"}}
	if r.Kept {
		help = append(help, CardLine{translation.Mark("Watch it"), "make watch EX=" + shortID(e)})
	}
	e.printLines(w, append(help, CardLine{translation.Mark("All details"), "make check VERBOSE=1"}))
	fmt.Fprintf(w, "  (%s)\n", r.times(e))
}

// printLoop writes an excerpt of the loop of a passed check.
func (r Judgement) printLoop(w io.Writer, e Exercise) {
	if len(r.Loop) == 0 {
		return
	}
	outcome.Wrap(w, "", e.Sayf("From the loop of %s (make watch EX=%s replays all of it):", counting(r.Own, e).ID,
		shortID(e)))
	for _, line := range r.Loop {
		outcome.Wrap(w, "  ", clock.ReplaceAllString(line, ""))
	}
}

// shortID is the ID that a reader types; all bugs share one ID.
func shortID(e Exercise) string {
	if IsBug(e.ID) {
		return strings.TrimSuffix(bugPrefix, "/")
	}
	return e.ID
}

// times returns a text with the times of the parts of an examination.
func (r Judgement) times(e Exercise) string {
	text := e.Sayf("built in %s, judged in %s", short(r.Built), short(cmp.Or(r.First, r.Took)))
	if r.First > 0 && len(r.Earlier) > 0 {
		text = e.Sayf("%s, with the checks before it in %s", text, short(r.Took))
	}
	return text
}

func short(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// Progress writes a bar for each chapter, the next exercise, and the remaining minutes.
func (c Course) Progress(w io.Writer, s State) {
	type sum struct{ done, all, left int }
	sums, order := map[string]*sum{}, []string{}
	left := 0
	for _, e := range c.All {
		chapter := e.ID[:2]
		if sums[chapter] == nil {
			sums[chapter], order = &sum{}, append(order, chapter)
		}
		if sums[chapter].all++; s.Passed[e.ID] != "" {
			sums[chapter].done++
		} else {
			sums[chapter].left += e.Minutes
			left += e.Minutes
		}
	}
	for _, chapter := range order {
		s := sums[chapter]
		full := s.done * 20 / s.all
		fmt.Fprintf(w, "%s  [%s%s] %2d of %2d, %3d minutes left\n", chapter, strings.Repeat("#", full),
			strings.Repeat(".", 20-full), s.done, s.all, s.left)
	}
	bugs := 0
	for id := range s.Passed {
		if strings.HasPrefix(id, bugPrefix) {
			bugs++
		}
	}
	fmt.Fprintf(w, "bugs found and fixed: %d (`make bug`)\n", bugs)
	if s.Passed[CapstoneID] != "" {
		fmt.Fprintln(w, "capstone: the operator for your own kind passed")
	}
	if next, ok := c.Next(s); ok {
		outcome.Wrap(w, "", fmt.Sprintf("next: %s %s, %d minutes: make exercise EX=%s (%d minutes left in all)", next.ID,
			next.Title, next.Minutes, next.ID, left))
	} else {
		fmt.Fprintln(w, "All exercises are done. Go on with make exercise EX=capstone KIND=Greeting and the bugs.")
	}
}

// Reflowed is the story, with a line for each paragraph.
func (e Exercise) Reflowed() string { return reflowed(e.Story) }

// PrintStory writes the story of an exercise, and what to do.
func (e Exercise) PrintStory(w io.Writer) {
	fmt.Fprintf(w, "%s  %s  %s\n\n", e.ID, e.Title, e.Sayf("(%d minutes)", e.Minutes))
	outcome.Wrap(w, "", reflowed(e.Story))
	check := ""
	switch {
	case e.Test != nil:
		check = e.Sayf("its tests: %s", e.Test.Run)
	case e.Specification != "":
		check = e.Sayf("experiments of the lab, made from the specification")
	case len(e.Lab) > 0:
		check = strings.Join(e.Lab, ", ")
	case e.CRD != nil:
		check = "objects that the API server must accept, refuse and show"
	}
	var checks strings.Builder
	outcome.Wrap(&checks, "            ", check)
	fmt.Fprintf(w, "\n%s\n", e.Sayf("the file    %s", e.Path()))
	fmt.Fprint(w, e.Sayf("the check   %s", strings.TrimLeft(checks.String(), " ")))
	if len(e.Lab) > 0 {
		fmt.Fprintln(w, e.Sayf("to run it   make down up, which is an empty cluster, and in make shell:"))
		fmt.Fprintf(w, "            %s\n", strings.Join(e.RunCommands(), "\n            "))
	}
	if e.ID == CapstoneID {
		fmt.Fprintln(w, e.Sayf("specified   %s", filepath.Join("work", e.folder(), e.Specification)))
		fmt.Fprintln(w, e.Sayf("to run it   make down up, which is an empty cluster, and in make shell:"))
		fmt.Fprintln(w, "            make -C "+filepath.Join("work", e.folder())+" run")
	}
	fmt.Fprintln(w, e.Sayf("then        make check   (make hint helps, make progress shows where you are)"))
}

// RunCommands run the reader's operator on the local cluster, in a shell that has it. The shell stays in its folder.
func (e Exercise) RunCommands() []string {
	return []string{"kubectl apply -f " + e.Chapter + "/config/crd",
		"kubectl apply -f " + e.Chapter + "/config/samples/myweb.yaml", "(cd " + filepath.Dir(e.Path()) + " && go run .)"}
}

// PrintHint writes a hint, and what follows it.
func PrintHint(w io.Writer, text, after string) {
	outcome.Wrap(w, "", text)
	if after != "" {
		fmt.Fprintln(w, after)
	}
}

// AfterHint says what follows a hint.
func (e Exercise) AfterHint(last bool) string {
	switch {
	case !last:
		return e.Sayf("`make hint` says more.")
	case e.ID == CapstoneID:
		return e.Sayf("That was the last hint: your operator has no solution but yours.")
	}
	return e.Sayf("That was the last hint; `make solution` shows a diff.")
}

// Print writes the complaint, and what to do. The fault itself stays hidden.
func (b Bug) Print(w io.Writer, number int) {
	fmt.Fprintf(w, "bug %d, level %d\n\n", number, b.Level)
	outcome.Wrap(w, "  ", reflowed(b.Symptom))
	fmt.Fprintf(w, "\nthe program  work/bug, the operator of chapter %s\nthe check    %s\n", b.planted.Of,
		strings.Join(b.planted.CaughtBy, ", "))
	var reading strings.Builder
	outcome.Wrap(&reading, "             ", b.reading())
	fmt.Fprintf(w, "to read      %s", strings.TrimLeft(reading.String(), " "))
	fmt.Fprintln(w, "then         make check shows the evidence, make hint helps; make solution shows the fault")
}
