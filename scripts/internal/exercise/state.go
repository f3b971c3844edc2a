package exercise

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"sigs.k8s.io/yaml"

	"example.com/operator-workshop/scripts/internal/difference"
	"example.com/operator-workshop/scripts/internal/translation"
)

// State is the workshop's record of a reader's work.
type State struct {
	// Current is the current exercise, the capstone, or bug/NAME.
	Current string `json:"current,omitempty"`
	// Exercise is the exercise that was begun last: a bug or the capstone in between does not change the next exercise.
	Exercise string `json:"exercise,omitempty"`
	// Begun has, for each folder of work/, the exercise whose files are there.
	Begun map[string]string `json:"begun,omitempty"`
	// Hints is how many hints of the current exercise were shown.
	Hints int `json:"hints,omitempty"`
	// Passed has the exercises and bugs that are done, with the time.
	Passed map[string]string `json:"passed,omitempty"`
	// Solved is the digest of the exercise that was passed last, with its files.
	Solved string `json:"solved,omitempty"`
	// Failure is the output of the last check of the current exercise. It selects the matching hint.
	Failure string `json:"failure,omitempty"`
	// Failing names this failure, and Wrong the known wrong answer that it looks like. Another failure has other hints.
	Failing string `json:"failing,omitempty"`
	Wrong   string `json:"wrong,omitempty"`
	// Differs are the places at which these files differ from the solution, when they may explain the failure.
	Differs []difference.Difference `json:"differs,omitempty"`
	// Judged is the digest of the files that the last check of the current exercise has judged.
	Judged string `json:"judged,omitempty"`
	// Card is the card of the last check of the current exercise.
	Card *Card `json:"card,omitempty"`
}

func (w Workspace) statePath() string { return filepath.Join(w.Work, ".state.yaml") }

// State reads the state; without a state it returns an empty one.
func (w Workspace) State() (s State, err error) {
	data, err := readFile(w.statePath(), "work/.state.yaml")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return s, err
	}
	if err := yaml.Unmarshal(data, &s); err != nil {
		return s, fmt.Errorf("work/.state.yaml cannot be read: delete it, your programs stay as they are: %w", err)
	}
	if s.Passed == nil {
		s.Passed = map[string]string{}
	}
	if s.Exercise == "" && idPattern.MatchString(s.Current) {
		s.Exercise = s.Current
	}
	if s.Begun == nil {
		s.Begun = map[string]string{}
	}
	return s, nil
}

// SetState writes the state.
func (w Workspace) SetState(s State) error {
	data, err := yaml.Marshal(s)
	if err != nil {
		return err
	}
	return write(w.statePath(), data)
}

// HasBegun reports whether the files in the folder of an exercise belong to it.
func (s State) HasBegun(e Exercise) bool { return s.InFolder(e) == e.ID }

// InFolder returns the exercise to which the files in the folder of an exercise belong; empty when there are none.
func (s State) InFolder(e Exercise) string { return s.Begun[e.folder()] }

// Take makes an exercise the current exercise.
func (s *State) Take(e Exercise) {
	if s.Current != e.ID {
		s.Current, s.Hints, s.Failure, s.Failing, s.Wrong, s.Differs, s.Judged, s.Card = e.ID, 0, "", "", "", nil, "", nil
	}
	if idPattern.MatchString(e.ID) {
		s.Exercise = e.ID
	}
}

// Judged records the report of an exercise's files, by their digest. The hints begin anew when the failure is another
// one.
func (c Course) Judged(e Exercise, s State, files string, r Judgement) error {
	const mostOfFailure = 64 << 10 // the words that select a hint may be those of the last failed check
	s.Judged = files
	if s.Failure = r.Failure(); len(s.Failure) > mostOfFailure {
		s.Failure = s.Failure[:mostOfFailure]
	}
	cause, failing := c.Cause(e, s.Failure), r.failing()
	differs := cause.Differs
	if cause.Same { // the hint of the known wrong answer says it
		differs = nil
	}
	isAnother := failing != s.Failing || cause.Wrong.Name != s.Wrong ||
		e.sayDifferences(differs) != e.sayDifferences(s.Differs)
	if s.Failing, s.Wrong, s.Differs = failing, cause.Wrong.Name, differs; isAnother {
		s.Hints = 0
	}
	if r.Passed() {
		s.Passed[e.ID] = c.Now().Format(time.RFC3339)
		s.Solved = files
	}
	card := r.Card(c.nextTitle(e, s), s.Card)
	card.Lines = append(card.Lines, cause.place()...)
	s.Card, card.Time = &card, c.Now()
	return errors.Join(c.SetState(s), c.Remember(files, r))
}

// ShowFailure keeps the card of a failure of the exercise's own check before the other checks have ended, for the window.
func (c Course) ShowFailure(e Exercise, own []Result) error {
	s, err := c.State()
	if err != nil || len(failed(own)) == 0 {
		return err
	}
	s.Take(e)
	card := Judgement{Own: own}.Card("", nil)
	card.Lines = append(card.Lines, c.Place(e, own)...)
	s.Card, card.Time = &card, c.Now()
	return c.SetState(s)
}

// Digest returns a digest of the reader's files as they are now.
func (c Course) Digest(e Exercise) string {
	files, err := c.Written(e)
	if err != nil {
		return ""
	}
	return e.ID + " " + digest(&attempt{e: e, files: files})
}

// A Beginning describes how an exercise was begun.
type Beginning struct {
	// Continued: the reader's files belong to this exercise, and stay.
	Continued bool
	// Kept: the reader's own solution of the exercise before is the starter.
	Kept bool
	// Saved is the folder with the files that the starter has replaced; empty when there were none.
	Saved string
}

// ErrNotReplaced is returned when the reader wants to keep the files that a starter would replace.
var ErrNotReplaced = errors.New("nothing was changed")

// Begin makes an exercise the current exercise. A reader who has begun it keeps the files, and so does a reader whose
// files solve the exercise before. All other readers get the starter, when agreed reports that their files may be
// replaced.
func (c Course) Begin(e Exercise, agreed func(Exercise) bool) (b Beginning, err error) {
	if e.made != nil { // another plan
		b.Saved, err = c.Goto(e, agreed)
		return b, err
	}
	s, err := c.State()
	if err != nil {
		return b, err
	}
	mine, err := c.Written(e)
	if err != nil {
		return b, err
	}
	chain := before(c.All, e)
	b.Continued = len(mine) > 0 && s.Begun[e.folder()] == e.ID
	b.Kept = !b.Continued && len(chain) > 0 && s.Solved != "" && s.Solved == c.Digest(chain[len(chain)-1])
	if b.Kept {
		if err := c.setFirst(e, mine); err != nil {
			return b, err
		}
	}
	if b.Continued || b.Kept {
		return b, c.GoOn(e)
	}
	b.Saved, err = c.Goto(e, agreed)
	return b, err
}

// OpenBug returns the bug in work/bug that is not fixed yet, if there is one.
func (c Course) OpenBug(bugs []Bug, s State) (Bug, bool) {
	id := s.Begun[Bug{}.Exercise().folder()]
	at := slices.IndexFunc(bugs, func(b Bug) bool { return b.Exercise().ID == id })
	if at < 0 || s.Passed[id] != "" {
		return Bug{}, false
	}
	files, err := c.Written(bugs[at].Exercise())
	return bugs[at], err == nil && len(files) > 0
}

// Always lets a command replace files without a question.
func Always(Exercise) bool { return true }

// Goto replaces the reader's files by the starter of an exercise, when agreed reports that they may be replaced, and
// makes the exercise the current exercise.
func (c Course) Goto(e Exercise, agreed func(Exercise) bool) (saved string, err error) {
	mine, err := c.Written(e)
	if err != nil {
		return "", err
	}
	files, err := c.Files(e, e.Starter)
	if err != nil {
		return "", err
	}
	same := func(a, b map[string][]byte) bool { return maps.EqualFunc(a, b, bytes.Equal) }
	if len(mine) > 0 && !same(mine, files) && !same(mine, c.begunStarter(e)) && !agreed(e) {
		return "", ErrNotReplaced
	}
	if saved, err = c.Put(e, files); err != nil {
		return saved, err
	}
	return saved, errors.Join(c.setFirst(e, nil), c.Module(e), c.GoOn(e))
}

// begunStarter returns the starter of the exercise whose files are in the folder of e, or none. A reader who has not
// changed this starter has nothing to lose.
func (c Course) begunStarter(e Exercise) map[string][]byte {
	s, err := c.State()
	if err != nil || s.Begun[e.folder()] == "" {
		return nil
	}
	begun, err := Find(c.All, s.Begun[e.folder()])
	if err != nil {
		return nil // a bug
	}
	files, _ := c.Files(begun, begun.Starter) // without a specification, the capstone has no starter
	return files
}

// firstDir has the reader's own files with which an exercise began. An exercise that began with its starter has none.
func (w Workspace) firstDir(e Exercise) string { return filepath.Join(w.Work, ".first", e.ID) }

// setFirst records the files with which an exercise begins; without files, the exercise begins with its starter.
func (w Workspace) setFirst(e Exercise, files map[string][]byte) error {
	if err := os.RemoveAll(w.firstDir(e)); err != nil {
		return err
	}
	for name, data := range files {
		if err := write(filepath.Join(w.firstDir(e), name), data); err != nil {
			return err
		}
	}
	return nil
}

// First returns the files with which an exercise began: the reader's own solution of the exercise before, or the
// starter.
func (c Course) First(e Exercise) (map[string][]byte, error) {
	files, err := read(c.firstDir(e), filepath.Join("work", ".first", e.ID))
	if err != nil || len(files) > 0 {
		return files, err
	}
	return c.Files(e, e.Starter)
}

// GoOn makes an exercise the current exercise, and records that the files in its folder belong to it. The hints begin anew.
func (c Course) GoOn(e Exercise) error {
	s, err := c.State()
	if err != nil {
		return err
	}
	s.Take(e)
	s.Hints, s.Begun[e.folder()] = 0, e.ID
	return c.SetState(s)
}

// afterCapstone is what a reader does after the capstone, whichever exercises are still open.
var afterCapstone = translation.Mark("make examine tries faults, crashes and two replicas on your operator")

// nextTitle is what a card calls the next exercise.
func (c Course) nextTitle(e Exercise, s State) string {
	if e.ID == CapstoneID {
		return afterCapstone
	}
	if next, ok := c.Next(s); ok {
		return next.ID + " " + next.Title
	}
	return ""
}

// NextLine names the next exercise and its command, or what comes after the capstone. It is empty when nothing is left.
func (c Course) NextLine(e Exercise, s State) string {
	if e.ID == CapstoneID {
		return e.Sayf("Next: %s. `04-controller-runtime/exercises/kind/README.md` has the commands.", e.said.Say(afterCapstone))
	}
	if next, ok := c.Next(s); ok {
		return next.Sayf("Next: %s: make exercise EX=%s", next.ID+" "+next.Title, next.ID)
	}
	return ""
}

// Next returns the next exercise: the exercise that was begun last until it is passed, then the first exercise after it
// that is not passed.
func (c Course) Next(s State) (Exercise, bool) {
	open := func(e Exercise) bool { return s.Passed[e.ID] == "" }
	for _, e := range c.All {
		if open(e) && (s.Exercise == "" || compareIDs(e.ID, s.Exercise) >= 0) {
			return e, true
		}
	}
	if at := slices.IndexFunc(c.All, open); at >= 0 {
		return c.All[at], true
	}
	return Exercise{}, false
}
