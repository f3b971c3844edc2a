package exercise

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"

	"sigs.k8s.io/yaml"
)

// State is what the workshop remembers of a reader.
type State struct {
	// Current is the exercise that is being done, the capstone, or bug/NAME.
	Current string `json:"current,omitempty"`
	// Exercise is the last one that was begun: a bug or the capstone in between does not change what is next.
	Exercise string `json:"exercise,omitempty"`
	// Begun has the exercise whose files are in a folder of work/.
	Begun map[string]string `json:"begun,omitempty"`
	// Hints is how many hints of the current one were shown.
	Hints int `json:"hints,omitempty"`
	// Passed are exercises and bugs that are done, with the time.
	Passed map[string]string `json:"passed,omitempty"`
	// Solved says which exercise was passed last, and with which files.
	Solved string `json:"solved,omitempty"`
	// Failure is what the last check of the current exercise printed, for the hint that fits.
	Failure string `json:"failure,omitempty"`
	// Wrong is the known wrong answer that the last check recognised.
	Wrong string `json:"wrong,omitempty"`
}

func (w Workspace) statePath() string { return filepath.Join(w.Work, ".state.yaml") }

// State reads it; an empty one when there is none.
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

// SetState writes it.
func (w Workspace) SetState(s State) error {
	data, err := yaml.Marshal(s)
	if err != nil {
		return err
	}
	return write(w.statePath(), data)
}

// Take makes an exercise the current one.
func (s *State) Take(e Exercise) {
	if s.Current != e.ID {
		s.Current, s.Hints, s.Failure, s.Wrong = e.ID, 0, "", ""
	}
	if idPattern.MatchString(e.ID) {
		s.Exercise = e.ID
	}
}

// Digest is of the reader's files, as they are now.
func (c Course) Digest(e Exercise) string {
	files, err := c.Written(e)
	if err != nil {
		return ""
	}
	return e.ID + " " + digest(&trial{e: e, files: files})
}

// A Beginning is how an exercise was begun.
type Beginning struct {
	// Continued: the reader's files are of this exercise, and stay.
	Continued bool
	// Kept: the reader's own solution of the exercise before is the starter.
	Kept bool
	// Saved is where the files are that the starter has replaced; empty when there were none.
	Saved string
}

// ErrNotReplaced is returned when the reader wants to keep the files that a starter would replace.
var ErrNotReplaced = errors.New("nothing was changed")

// Begin makes an exercise the current one. A reader who has begun it goes on with it, and so does one whose files solve
// the exercise before; all others get the starter, when agreed says that their files may be replaced.
func (c Course) Begin(e Exercise, agreed func(Exercise) bool) (b Beginning, err error) {
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
	if b.Continued || b.Kept {
		return b, c.GoOn(e)
	}
	ours, err := c.Files(e, e.Starter)
	if err != nil {
		return b, err
	}
	if !maps.EqualFunc(mine, ours, bytes.Equal) && len(mine) > 0 && !agreed(e) {
		return b, ErrNotReplaced
	}
	b.Saved, err = c.Goto(e)
	return b, err
}

// OpenBug is the bug in work/bug that is not fixed yet, if there is one.
func (c Course) OpenBug(bugs []Bug, s State) (Bug, bool) {
	id := s.Begun[Bug{}.Exercise().folder()]
	at := slices.IndexFunc(bugs, func(b Bug) bool { return b.Exercise().ID == id })
	if at < 0 || s.Passed[id] != "" {
		return Bug{}, false
	}
	files, err := c.Written(bugs[at].Exercise())
	return bugs[at], err == nil && len(files) > 0
}

// Goto makes the starter of an exercise the reader's files, and the exercise the current one.
func (c Course) Goto(e Exercise) (saved string, err error) {
	files, err := c.Files(e, e.Starter)
	if err != nil {
		return "", err
	}
	if saved, err = c.Put(e, files); err != nil {
		return saved, err
	}
	return saved, errors.Join(c.Module(e), c.GoOn(e))
}

// GoOn makes an exercise the current one, and that of the files in its folder.
func (c Course) GoOn(e Exercise) error {
	s, err := c.State()
	if err != nil {
		return err
	}
	s.Take(e)
	s.Begun[e.folder()] = e.ID
	return c.SetState(s)
}

// Next is the exercise to do: the one that was begun last until it is passed, then the first one after it that is not.
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
