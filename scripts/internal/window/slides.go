package window

import (
	"bytes"
	"errors"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"strings"

	"example.com/operator-workshop/scripts/internal/teaching"
)

var slidesLayout = template.Must(template.ParseFS(web, "web/slides.html", "web/languages.html"))

// slidesShown has the data that the page of the slides needs.
type slidesShown struct {
	spoken
	Page, Nonce, BodyTag string
	// Presenter means that notes, clock and run sheet are beside the slide.
	Presenter bool
	Slides    []template.HTML
}

// slides shows the slides, or the presenter's view of them.
func (s *Server) slides(w http.ResponseWriter, r *http.Request) {
	if !s.pages.has(teaching.SlidesFile) {
		http.NotFound(w, r)
		return
	}
	in := s.speaking(r)
	html, has, err := s.render(teaching.SlidesFile, in)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	view := slidesShown{spoken: in, BodyTag: has.Tag, Page: teaching.SlidesFile, Nonce: nonce(w),
		Presenter: path.Base(r.URL.Path) == "presenter"}
	for _, slide := range strings.Split(string(html), "<h2 ")[1:] { // text on a page is escaped
		view.Slides = append(view.Slides, template.HTML("<h2 "+slide))
	}
	var out bytes.Buffer
	if err := slidesLayout.Execute(&out, view); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = out.WriteTo(w)
}

// sheets returns the run sheets, for the presenter's view.
func (s *Server) sheets(w http.ResponseWriter, _ *http.Request) {
	all, err := teaching.Sheets(s.Root)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	answer(w, all)
}
