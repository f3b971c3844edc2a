package window

import (
	"cmp"
	"errors"
	"go/format"
	"io"
	"net/http"
	"path"
	"slices"
	"strings"

	"example.com/operator-workshop/scripts/internal/exercise"
	"example.com/operator-workshop/scripts/internal/page"
)

// mostOfText is how many bytes of a text are read: one more than a file may have.
const mostOfText = 1<<20 + 1

// begun returns the exercise of a request when its files are in work/.
func (s *Server) begun(w http.ResponseWriter, r *http.Request) (exercise.Exercise, bool) {
	e, state, ok := s.named(w, r)
	if ok && !progressOf(e, state).Begun {
		if r.Method == http.MethodGet && r.URL.Query().Has("version") {
			w.WriteHeader(http.StatusNoContent) // the reader has gone on, and the tab does not know it yet
			return e, false
		}
		http.Error(w, "The exercise is not begun.", http.StatusNotFound)
		return e, false
	}
	return e, ok
}

// edited returns the exercise of a request, with the file that the request names. It is a file that the exercise gives to
// its reader to edit.
func (s *Server) edited(w http.ResponseWriter, r *http.Request) (exercise.Exercise, bool) {
	e, ok := s.begun(w, r)
	if !ok {
		return e, false
	}
	names, err := s.Course.Edited(e)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return e, false
	}
	e.File = cmp.Or(r.URL.Query().Get("name"), e.File)
	if !slices.Contains(names, e.File) {
		http.Error(w, "The exercise has no such file to edit.", http.StatusNotFound)
		return e, false
	}
	return e, true
}

// readText answers with the file that a reader edits, unless the tab knows this version.
func (s *Server) readText(w http.ResponseWriter, r *http.Request) {
	e, ok := s.edited(w, r)
	if !ok {
		return
	}
	text, err := s.Course.ReadText(e)
	switch known := r.URL.Query(); {
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	case known.Has("version") && known.Get("version") == text.Version:
		w.WriteHeader(http.StatusNoContent)
	default:
		answer(w, text)
	}
}

// writeText replaces the file, when the file is still the version of which the tab knows. Otherwise it answers with the
// present text. A Go file that parses is written as gofmt formats it.
func (s *Server) writeText(w http.ResponseWriter, r *http.Request) {
	e, ok := s.edited(w, r)
	if !ok {
		return
	}
	mine, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostOfText))
	if err != nil {
		http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
		return
	}
	text, err := s.Course.WriteText(e, formatted(e.File, string(mine)), r.URL.Query().Get("version"))
	if err != nil && !errors.Is(err, exercise.ErrChanged) {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	answer(w, struct {
		exercise.Text
		Saved bool `json:"saved"`
	}{text, err == nil})
}

// formatted returns a text as gofmt formats it, with the line ends that it has, or a text that gofmt cannot format as it is.
func formatted(name, text string) string {
	unix := strings.ReplaceAll(text, "\r\n", "\n")
	out, err := format.Source([]byte(unix))
	switch {
	case err != nil || path.Ext(name) != ".go":
		return text
	case unix != text:
		return strings.ReplaceAll(string(out), "\n", "\r\n")
	}
	return string(out)
}

// compareText answers with the difference between the file and the text of a tab.
func (s *Server) compareText(w http.ResponseWriter, r *http.Request) {
	e, ok := s.edited(w, r)
	if !ok {
		return
	}
	mine, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostOfText))
	if err != nil {
		http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
		return
	}
	text, err := s.Course.ReadText(e)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	answer(w, struct {
		exercise.Text
		Difference string `json:"difference"`
	}{text, page.Diff("on the disk", "in the editor", text.Text, string(mine))})
}
