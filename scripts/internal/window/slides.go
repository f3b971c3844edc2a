package window

import (
	"bytes"
	"encoding/base64"
	"errors"
	"html/template"
	"io/fs"
	"net/http"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"

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
	view.Slides = split(string(html))
	own, err := s.ownSlides()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	view.Slides = append(view.Slides, own...)
	var out bytes.Buffer
	if err := slidesLayout.Execute(&out, view); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = out.WriteTo(w)
}

// sheets returns the run sheets in the language of the reader, for the presenter's view.
func (s *Server) sheets(w http.ResponseWriter, r *http.Request) {
	all, err := teaching.Sheets(s.Root, s.speaking(r).T)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	own, err := s.ownSlides()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	deck, err := teaching.Deck(s.Root)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	for _, sheet := range all {
		for i, row := range sheet.Rows {
			if slices.Contains(row.Slides, 1) {
				sheet.Rows[i].Slides = slices.Insert(row.Slides, 1, numbered(len(deck)+1, len(own))...)
			}
		}
	}
	answer(w, all)
}

// ownFile has the slides of an instructor: name, address, a picture of a code. It is not committed.
const ownFile = "work/slides.md"

// ownSlides returns the slides of the instructor. Their numbers follow those of SLIDES.md, so no other slide moves; a
// run sheet shows them after its first slide. A picture is a PNG file beside the file.
func (s *Server) ownSlides() ([]template.HTML, error) {
	source, err := os.ReadFile(s.below(ownFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	md := markdown(nil)
	doc := md.Parser().Parse(text.NewReader(source))
	err = ast.Walk(doc, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		image, ok := node.(*ast.Image)
		if !ok || !entering {
			return ast.WalkContinue, nil
		}
		file, _, ok := s.pages.target(ownFile, string(image.Destination))
		if !ok || path.Ext(file) != ".png" {
			return ast.WalkContinue, nil
		}
		data, err := os.ReadFile(s.below(file))
		image.Destination = []byte("data:image/png;base64," + base64.StdEncoding.EncodeToString(data))
		return ast.WalkContinue, err
	})
	if err != nil {
		return nil, err
	}
	var html bytes.Buffer
	err = md.Renderer().Render(&html, source, doc)
	return split(html.String()), err
}

// split returns the slides of a page: each begins with a heading of the second level. Text on a page is escaped.
func split(html string) (all []template.HTML) {
	for _, slide := range strings.Split(html, "<h2 ")[1:] {
		all = append(all, template.HTML("<h2 "+slide))
	}
	return all
}

// numbered returns some numbers, counted from the first.
func numbered(first, count int) (all []int) {
	for n := range count {
		all = append(all, first+n)
	}
	return all
}
