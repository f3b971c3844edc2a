package window

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"example.com/operator-workshop/scripts/internal/exercise"
	"example.com/operator-workshop/scripts/internal/page"
)

// Progress has all exercises, and the reader's current exercise.
type Progress struct {
	Current   string            `json:"current"`
	Next      string            `json:"next"`
	Passed    int               `json:"passed"`
	Exercises []ProgressOfOne   `json:"exercises"`
	Chapters  map[string]string `json:"chapters"`
}

// ProgressOfOne has the progress of one exercise in the list.
type ProgressOfOne struct {
	ID      string `json:"id"`
	Title   string `json:"title"`
	Chapter string `json:"chapter"`
	Minutes int    `json:"minutes"`
	Passed  bool   `json:"passed"`
	Begun   bool   `json:"begun"`
	// After is the exercise that the capstone follows; the other exercises follow their numbers.
	After string `json:"after,omitempty"`
}

// Task is one exercise, with the reader's changes.
type Task struct {
	ProgressOfOne
	Story string `json:"story"`
	// Path is the main file to edit, Difference has the reader's changes since the exercise began.
	Path       string `json:"path"`
	Difference string `json:"difference"`
	// Card is the card of the last check, as the terminal shows it.
	Card *exercise.Card `json:"card,omitempty"`
	// Hint is the hint that was shown last.
	Hint string `json:"hint,omitempty"`
	// AfterHint says whether more hints follow.
	AfterHint string `json:"afterHint,omitempty"`
	// LastCheck can be watched.
	LastCheck *LastCheck `json:"verdict,omitempty"`
	// Editor is the command that the button runs, empty when there is none.
	Editor string `json:"editor"`
	// Program is the command that runs the reader's program, empty when the exercise is not about a program.
	Program string `json:"program"`
	// Page is the page of the exercise alone, if it has one.
	Page string `json:"page,omitempty"`
	// InFolder is the exercise to which the files in the folder belong.
	InFolder string `json:"inFolder"`
	// Files are the files to edit, the main file first.
	Files []File `json:"files"`
	// Beside has files that help to understand the main file, by their paths, and the files to edit.
	Beside map[string]string `json:"beside"`
}

// File is a file that the reader edits.
type File struct {
	// Name is the path in the folder of the exercise, Path that in the checkout.
	Name string `json:"name"`
	Path string `json:"path"`
	// Address is the file for Go's language server, empty when the server does not run.
	Address string `json:"address"`
	// Places are lines of the file on which the last check has something to say.
	Places []exercise.Place `json:"places"`
}

func (s *Server) exercises(w http.ResponseWriter, r *http.Request) {
	in := s.speaking(r)
	state, err := s.Course.State()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	p := Progress{Current: state.Exercise, Chapters: map[string]string{}}
	for _, e := range exercise.Listed(s.Course.All) {
		one := progressOf(e.In(in.exercises), state)
		if one.Passed {
			p.Passed++
		}
		p.Exercises = append(p.Exercises, one)
		p.Chapters[e.Chapter] = e.Chapter
		if page := e.Chapter + "/README.md"; s.pages.has(page) {
			p.Chapters[e.Chapter] = in.title(s.pages, page)
		}
	}
	if next, ok := s.Course.Next(state); ok {
		p.Next = next.ID
	}
	answer(w, p)
}

func progressOf(e exercise.Exercise, state exercise.State) ProgressOfOne {
	one := ProgressOfOne{ID: e.ID, Title: e.Title, Chapter: e.Chapter, Minutes: e.Minutes,
		Passed: state.Passed[e.ID] != "", Begun: state.HasBegun(e)}
	if e.ID == exercise.CapstoneID {
		one.After = exercise.BeforeCapstone
	}
	return one
}

func (s *Server) exercise(w http.ResponseWriter, r *http.Request) {
	e, state, ok := s.named(w, r)
	if !ok {
		return
	}
	said := s.speaking(r).exercises
	e = e.In(said)
	task := Task{ProgressOfOne: progressOf(e, state), Story: e.Reflowed(), Path: e.Path(), Editor: strings.Join(editor(), " "),
		InFolder: state.InFolder(e)}
	if e.ID == exercise.CapstoneID && s.pages.has(exercise.CapstonePage) {
		task.Page = exercise.CapstonePage
	}
	if state.Current == e.ID {
		task.Card = e.Card(state.Card)
		task.Hint, task.AfterHint = s.Course.ShownHint(e, state)
	}
	all := s.lastChecks()
	if at := slices.IndexFunc(all, func(v LastCheck) bool { return v.Exercise == e.ID }); at >= 0 {
		all[at].Message = said.SayWhole(all[at].Message)
		task.LastCheck = &all[at]
	}
	if task.Begun {
		if err := s.addFiles(&task, e, state); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
	}
	answer(w, task)
}

// addFiles adds what a task shows of the reader's files.
func (s *Server) addFiles(task *Task, e exercise.Exercise, state exercise.State) (err error) {
	folder := filepath.ToSlash(filepath.Dir(e.Path()))
	task.Difference, err = s.difference(e)
	switch {
	case e.ID == exercise.CapstoneID: // there is no difference while the specification has a mistake
		task.Program = fmt.Sprintf("make -C '%s' run", folder)
	case err != nil:
		return err
	case len(e.Lab) > 0:
		task.Program = fmt.Sprintf("(cd '%s' && go run .)", folder)
	}
	names, err := s.Course.Edited(e)
	if err != nil {
		return err
	}
	for _, name := range names {
		of := e
		of.File = name
		file := File{Name: name, Path: of.Path()}
		if text, err := s.Course.ReadText(of); err == nil { // else the editor says so
			file.Address, file.Places = s.languageServers.address(of), s.Course.Places(of, state, text.Text)
		}
		task.Files = append(task.Files, file)
	}
	text, err := s.Course.ReadText(e)
	if err != nil {
		return nil
	}
	task.Beside, err = s.Course.Beside(e, text.Text)
	return err
}

// named returns the exercise of a request's path.
func (s *Server) named(w http.ResponseWriter, r *http.Request) (exercise.Exercise, exercise.State, bool) {
	e, err := exercise.Find(s.Course.All, r.PathValue("id"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return e, exercise.State{}, false
	}
	state, err := s.Course.State()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
	return e, state, err == nil
}

// difference returns the reader's changes since the exercise began.
func (s *Server) difference(e exercise.Exercise) (string, error) {
	mine, err := s.Course.Written(e)
	if err != nil {
		return "", err
	}
	first, err := s.Course.First(e)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	for _, name := range exercise.Names(first, mine) {
		text.WriteString(page.Diff("at the beginning: "+name, filepath.Join(filepath.Dir(e.Path()), name), string(first[name]),
			strings.ReplaceAll(string(mine[name]), "\r\n", "\n")))
	}
	return text.String(), nil
}

// editor returns the command of the reader's editor, when the editor opens its own window.
func editor() []string {
	if visual := strings.Fields(os.Getenv("VISUAL")); len(visual) > 0 {
		return visual
	}
	if code, err := exec.LookPath("code"); err == nil {
		return []string{code}
	}
	return nil
}

// openFile opens the file of an exercise in the reader's editor.
func (s *Server) openFile(w http.ResponseWriter, r *http.Request) {
	e, _, ok := s.named(w, r)
	if !ok {
		return
	}
	command := editor()
	if len(command) == 0 {
		http.Error(w, "Neither $VISUAL is set nor is there a program code: open the file by its path.", http.StatusNotFound)
		return
	}
	cmd := exec.Command(command[0], append(command[1:], s.below(e.Path()))...)
	cmd.Dir = s.Root
	if err := cmd.Start(); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	go func() { _ = cmd.Wait() }() // the editor belongs to the reader, and stays open after the end of the server
	w.WriteHeader(http.StatusNoContent)
}

func answer(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value)
}
