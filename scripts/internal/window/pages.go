package window

import (
	"bytes"
	"fmt"
	"html"
	"html/template"
	"io/fs"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"example.com/operator-workshop/scripts/internal/page"
	"example.com/operator-workshop/scripts/internal/translation"
)

// pages has the parts of the checkout that the window shows: its pages, and the files to which they link. The window
// serves no other files.
type pages struct {
	root  string
	names []string
	// titles has the first headings of the pages, by name.
	titles map[string]string
	// files has the files to which a page links.
	files map[string]bool
}

func findPages(root string) (*pages, error) {
	found, err := page.Find(root)
	if err != nil {
		return nil, err
	}
	p := &pages{root: root, titles: map[string]string{}, files: map[string]bool{}}
	for _, file := range found {
		name, err := filepath.Rel(root, file)
		if err != nil {
			return nil, err
		}
		source, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		name = filepath.ToSlash(name)
		p.names = append(p.names, name)
		p.titles[name] = name
		doc := markdown(nil).Parser().Parse(text.NewReader(source))
		if title := firstHeading(doc, source); title != "" {
			p.titles[name] = title
		}
		for _, target := range linkTargets(doc) {
			if file, _, ok := p.target(name, target); ok {
				p.files[file] = true
			}
		}
	}
	return p, nil
}

func firstHeading(doc ast.Node, source []byte) string {
	for node := doc.FirstChild(); node != nil; node = node.NextSibling() {
		if heading, ok := node.(*ast.Heading); ok {
			return string(heading.Lines().Value(source))
		}
	}
	return ""
}

func linkTargets(doc ast.Node) (targets []string) {
	_ = ast.Walk(doc, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if link, ok := node.(*ast.Link); ok && entering {
			targets = append(targets, string(link.Destination))
		}
		if image, ok := node.(*ast.Image); ok && entering {
			targets = append(targets, string(image.Destination))
		}
		return ast.WalkContinue, nil
	})
	return targets
}

// target returns the regular file of the checkout to which a link of a page leads, and the part of the file. A folder
// stands for its README.md.
func (p *pages) target(from, link string) (file, fragment string, ok bool) {
	link, fragment, _ = strings.Cut(link, "#")
	if strings.Contains(link, ":") {
		return "", "", false
	}
	file = from
	if link != "" {
		file = path.Join(path.Dir(from), link)
	}
	if !filepath.IsLocal(filepath.FromSlash(file)) {
		return "", "", false
	}
	info, err := fs.Stat(os.DirFS(p.root), file)
	if err == nil && info.IsDir() {
		file = path.Join(file, "README.md")
		info, err = fs.Stat(os.DirFS(p.root), file)
	}
	return file, fragment, err == nil && info.Mode().IsRegular()
}

func (p *pages) has(name string) bool { return p.titles[name] != "" }

// markdown reads pages as the page runner does. The function draw draws the blocks, in their order.
func markdown(draw func(util.BufWriter)) goldmark.Markdown {
	options := []goldmark.Option{goldmark.WithExtensions(extension.GFM),
		goldmark.WithParserOptions(parser.WithAutoHeadingID())}
	if draw != nil {
		options = append(options, goldmark.WithRendererOptions(
			renderer.WithNodeRenderers(util.Prioritized(blocks(draw), 100))))
	}
	return goldmark.New(options...)
}

type blocks func(util.BufWriter)

// RegisterFuncs replaces the functions that draw fenced blocks and HTML.
func (draw blocks) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindHTMLBlock, drawFold)
	r.Register(ast.KindFencedCodeBlock, func(w util.BufWriter, _ []byte, _ ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			draw(w)
		}
		return ast.WalkSkipChildren, nil
	})
}

// foldPattern matches the HTML by which a page begins or ends a fold.
var foldPattern = regexp.MustCompile(`^\s*(<details>)?\s*(?:<summary>([^<]*)</summary>)?\s*(</details>)?\s*$`)

// drawFold writes the beginning or the end of a fold. It omits all other HTML of a page.
func drawFold(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	parts := foldPattern.FindSubmatch(node.Lines().Value(source))
	if !entering || parts == nil {
		return ast.WalkSkipChildren, nil
	}
	_, _ = w.Write(parts[1])
	if len(parts[2]) > 0 {
		fmt.Fprintf(w, "<summary>%s</summary>", template.HTMLEscapeString(html.UnescapeString(string(parts[2]))))
	}
	_, _ = w.Write(parts[3])
	return ast.WalkSkipChildren, nil
}

// parsed returns the blocks of a page, in their order.
func (s *Server) parsed(name string) ([]*page.Block, error) {
	p, err := page.Parse(s.below(name))
	if err != nil {
		return nil, err
	}
	var all []*page.Block
	for _, part := range p.Parts {
		if part.Block != nil {
			all = append(all, part.Block)
		}
	}
	return all, nil
}

// render makes HTML of a page, in a language when it has a translation. Anchors and blocks are those of the English page.
func (s *Server) render(name string, in spoken) (body template.HTML, has translation.Language, err error) {
	english, err := os.ReadFile(s.below(name))
	if err != nil {
		return "", has, err
	}
	all, err := s.parsed(name)
	if err != nil {
		return "", has, err
	}
	number := 0
	md := markdown(func(w util.BufWriter) {
		drawBlock(w, number, all[number], in)
		number++
	})
	source, doc, has := english, md.Parser().Parse(text.NewReader(english)), translation.English
	if in.said != nil {
		t, err := translation.Open(s.Root, in.Name, name)
		if err != nil {
			return "", has, err
		}
		if t.Exists() {
			headings := headingsOf(doc)
			source, has = []byte(t.InPlace()), in.Language
			doc = md.Parser().Parse(text.NewReader(source))
			for i, heading := range headingsOf(doc) {
				id, _ := headings[i].AttributeString("id")
				heading.SetAttributeString("id", id)
			}
		}
	}
	s.lead(doc, source, name)
	unlabel(doc, source)
	var out bytes.Buffer
	err = md.Renderer().Render(&out, source, doc)
	return template.HTML(out.String()), has, err // only folds remain of the HTML in a page
}

func headingsOf(doc ast.Node) (all []ast.Node) {
	_ = ast.Walk(doc, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering && node.Kind() == ast.KindHeading {
			all = append(all, node)
		}
		return ast.WalkContinue, nil
	})
	return all
}

// unlabel removes the labels of outputs, because each block of the window has its own label.
func unlabel(doc ast.Node, source []byte) {
	var labels []ast.Node
	_ = ast.Walk(doc, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering && node.Type() == ast.TypeBlock && page.IsLabel(node, source) {
			labels = append(labels, node)
		}
		return ast.WalkContinue, nil
	})
	for _, label := range labels {
		label.Parent().RemoveChild(label.Parent(), label)
	}
}

// exerciseID is in the words of a link to an exercise.
var exerciseID = regexp.MustCompile(`\d\d\.\d+`)

// lead makes links lead to the window's pages and files. A link to another target shows its address as text.
func (s *Server) lead(doc ast.Node, source []byte, name string) {
	_ = ast.Walk(doc, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if image, ok := node.(*ast.Image); ok && entering {
			if file, _, ok := s.pages.target(name, string(image.Destination)); ok {
				image.Destination = []byte("/file/" + file)
			}
		}
		link, ok := node.(*ast.Link)
		if !ok || !entering {
			return ast.WalkContinue, nil
		}
		file, fragment, ok := s.pages.target(name, string(link.Destination))
		if !ok {
			link.SetAttributeString("rel", []byte("noopener noreferrer"))
			link.SetAttributeString("target", []byte("_blank"))
			return ast.WalkContinue, nil
		}
		address := "/file/" + file
		if s.pages.has(file) {
			address = "/page/" + file
		} else if in, english := ofLanguage(file); s.pages.has(english) {
			address = "/page/" + english + "?language=" + in
		}
		if fragment != "" {
			address += "#" + fragment
		}
		if words, ok := link.FirstChild().(*ast.Text); ok && fragment == "write-it-yourself" {
			link.SetAttributeString("data-exercise", exerciseID.Find(words.Value(source)))
		}
		link.Destination = []byte(address)
		return ast.WalkContinue, nil
	})
}

var layout = template.Must(template.ParseFS(web, "web/layout.html", "web/languages.html"))

// A chapter of the list beside a page.
type entry struct {
	Name, Title string
	Current     bool
	Below       []entry
}

// list returns the pages by folder: the pages of a chapter are below the chapter's page.
func (p *pages) list(current string, in spoken) (all []entry) {
	for _, name := range p.names {
		title := strings.NewReplacer("`", "", "*", "").Replace(in.title(p, name))
		one := entry{Name: name, Title: title, Current: name == current}
		folder, _, inside := strings.Cut(path.Dir(name), "/")
		if inside && len(all) > 0 && strings.HasPrefix(all[len(all)-1].Name, folder+"/") {
			all[len(all)-1].Below = append(all[len(all)-1].Below, one)
			continue
		}
		all = append(all, one)
	}
	return all
}

// shown has the data that the layout needs.
type shown struct {
	spoken
	Page, Title, Nonce string
	// BodyTag is the language of the body.
	BodyTag    string
	Body       template.HTML
	Chapters   []entry
	Route      []step
	Background []string
	Present    bool
}

func (s *Server) page(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("path")
	if !s.pages.has(name) {
		http.NotFound(w, r)
		return
	}
	if chosen := r.URL.Query().Get("language"); chosen != "" {
		http.SetCookie(w, &http.Cookie{Name: "language", Value: chosen, Path: "/", MaxAge: aYear,
			SameSite: http.SameSiteStrictMode})
		http.Redirect(w, r, "/page/"+name, http.StatusSeeOther)
		return
	}
	in := s.speaking(r)
	body, has, err := s.render(name, in)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	view := shown{Page: name, Title: in.title(s.pages, name), Body: body, BodyTag: has.Tag}
	all, _ := s.parsed(name)
	for _, block := range all {
		if block.Background != "" {
			view.Background = append(view.Background, block.Background)
		}
	}
	s.show(w, in, view)
}

// linked returns a file that a page links to.
func (s *Server) linked(name string) ([]byte, error) {
	if !s.pages.files[name] {
		return nil, fs.ErrNotExist
	}
	root, err := os.OpenRoot(s.Root)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return root.ReadFile(filepath.FromSlash(name))
}

// source answers with the text of a file that a page links to.
func (s *Server) source(w http.ResponseWriter, r *http.Request) {
	text, err := s.linked(r.PathValue("path"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write(text)
}

// file shows a file that a page links to.
func (s *Server) file(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("path")
	source, err := s.linked(name)
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	if path.Ext(name) == ".png" {
		w.Header().Set("Content-Type", "image/png")
		_, _ = w.Write(source)
		return
	}
	var body bytes.Buffer
	body.WriteString("<h1>" + template.HTMLEscapeString(path.Base(name)) + "</h1><p>" + template.HTMLEscapeString(name) + "</p>")
	body.WriteString(`<pre class="source" tabindex="0">` + colored(name, string(source)) + "</pre>")
	s.show(w, s.speaking(r), shown{Page: "README.md", Title: name, Body: template.HTML(body.String()),
		BodyTag: translation.English.Tag})
}

func (s *Server) show(w http.ResponseWriter, in spoken, view shown) {
	view.spoken, view.Nonce, view.Present, view.Chapters = in, nonce(w), s.Present, s.pages.list(view.Page, in)
	if s.pages.has(route[0].Page) {
		view.Route = route
	}
	var whole bytes.Buffer
	if err := layout.Execute(&whole, view); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = whole.WriteTo(w)
}
