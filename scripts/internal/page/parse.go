// Package page runs a README: every fenced block is executed, compared, included or skipped for a reason that is
// printed. The words after the language of a block decide which; CONTRIBUTING.md has the list.
package page

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/shlex"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"
)

// A Page is one README.
type Page struct {
	// Path of the file.
	Path string
	// Parts are the prose and the blocks of the page, in order.
	Parts []Part
}

// A Part is a piece of prose or a block.
type Part struct {
	// Prose is the text of a heading, paragraph or list without the marks of Markdown, or a table as written.
	Prose string
	// Heading means that the prose is a heading, Quoted that it is in a block quote.
	Heading, Quoted bool
	// Block is nil for prose.
	Block *Block
}

// A Block is one fenced block with the meaning of its words.
type Block struct {
	// Line is the line of the page on which the block's text begins.
	Line int
	// Lang is the first word after the fence.
	Lang string
	// Text is the block's content.
	Text string

	// Fails, Within, Background, Until, Stop and Timeout define how a sh block runs. Within and Timeout are times without
	// progress, at least a minute.
	Fails                   bool
	Within, Timeout         time.Duration
	Background, Until, Stop string
	// Contains marks a console block that has only some lines of the output.
	Contains bool
	// File is the file that an included block must equal. With Part, the block has only some lines of the file.
	File string
	Part bool
	// Skip is the reason for which the block is not executed.
	Skip string

	// Expected is the console block after a sh block.
	Expected *Block
}

// DefaultTimeout is how long one run of a sh block may make no progress.
const DefaultTimeout = 2 * time.Minute

// Parse reads a page. The error names every incorrect block.
func Parse(path string) (*Page, error) {
	source, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	page := &Page{Path: path}
	var wrong []error
	doc := goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser().Parse(text.NewReader(source))
	err = ast.Walk(doc, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering || node.Kind() == ast.KindDocument {
			return ast.WalkContinue, nil
		}
		switch n := node.(type) {
		case *ast.FencedCodeBlock:
			block, err := newBlock(n, source)
			if err != nil {
				wrong = append(wrong, fmt.Errorf("%s:%d: %w", path, block.Line, err))
			}
			page.Parts = append(page.Parts, Part{Block: block})
		case *ast.CodeBlock:
			wrong = append(wrong, fmt.Errorf("%s:%d: an indented block cannot say what it is: use a fence",
				path, lineOf(source, n.Lines().At(0).Start)))
		case *ast.Heading:
			page.Parts = append(page.Parts, Part{Prose: plain(n, source), Heading: true})
		case *east.Table:
			page.Parts = append(page.Parts, Part{Prose: table(n, source)})
			return ast.WalkSkipChildren, nil
		case *ast.Paragraph, *ast.TextBlock:
			if IsLabel(n, source) {
				return ast.WalkSkipChildren, nil
			}
			page.Parts = append(page.Parts, Part{Prose: marker(n) + plain(n, source), Quoted: quoted(n)})
		}
		if node.Type() == ast.TypeBlock && !node.HasChildren() || node.Type() == ast.TypeInline {
			return ast.WalkSkipChildren, nil
		}
		return ast.WalkContinue, nil
	})
	if err != nil {
		return nil, err
	}
	return page, errors.Join(append(wrong, page.join()...)...)
}

// join assigns each console block to the sh block before it.
func (p *Page) join() (wrong []error) {
	var last *Block
	names := map[string]bool{}
	for _, part := range p.Parts {
		b := part.Block
		if b == nil {
			continue
		}
		switch {
		case b.Lang == "console" && b.Skip == "" && (last == nil || last.Lang != "sh" || last.Background != ""):
			wrong = append(wrong, fmt.Errorf("%s:%d: a console block is the output of the sh block right before it", p.Path, b.Line))
		case b.Lang == "console" && b.Skip == "":
			last.Expected = b
		case b.Lang == "sh" && b.Background != "":
			names[b.Background] = true
		case b.Lang == "sh" && b.Stop != "" && !names[b.Stop]:
			wrong = append(wrong, fmt.Errorf("%s:%d: stop=%s: no block before it has background=%s", p.Path, b.Line, b.Stop, b.Stop))
		case b.Lang == "sh" && b.Stop != "":
			delete(names, b.Stop)
		}
		last = b
	}
	for name := range names {
		wrong = append(wrong, fmt.Errorf("%s: background=%s is never ended: a later sh block needs stop=%s", p.Path, name, name))
	}
	return wrong
}

func newBlock(n *ast.FencedCodeBlock, source []byte) (*Block, error) {
	b := &Block{Timeout: DefaultTimeout, Text: raw(n, source)}
	if b.Text != "" {
		b.Text += "\n"
	}
	if n.Info == nil {
		if n.Lines().Len() > 0 {
			b.Line = lineOf(source, n.Lines().At(0).Start)
		}
		return b, errors.New("a fence without a language: say what the block is")
	}
	b.Line = lineOf(source, n.Info.Segment.Start) + 1
	words, err := shlex.Split(string(n.Info.Segment.Value(source)))
	if err != nil || len(words) == 0 {
		return b, fmt.Errorf("words %q: %w", n.Info.Segment.Value(source), err)
	}
	b.Lang = words[0]
	for _, word := range words[1:] {
		if err := b.word(word); err != nil {
			return b, err
		}
	}
	return b, b.check(words[1:])
}

// word applies one word after the language to the block.
func (b *Block) word(word string) (err error) {
	key, value, hasValue := strings.Cut(word, "=")
	flags := map[string]*bool{"fails": &b.Fails, "contains": &b.Contains, "part": &b.Part}
	texts := map[string]*string{"background": &b.Background, "until": &b.Until, "stop": &b.Stop,
		"file": &b.File, "skip": &b.Skip}
	times := map[string]*time.Duration{"within": &b.Within, "timeout": &b.Timeout}
	switch {
	case flags[key] != nil && !hasValue:
		*flags[key] = true
	case texts[key] != nil && value != "":
		*texts[key] = value
	case times[key] != nil && value != "":
		*times[key], err = time.ParseDuration(value)
	default:
		err = fmt.Errorf("unknown word %q: CONTRIBUTING.md lists the words", word)
	}
	return err
}

// allowed lists the words of each kind of block.
var allowed = map[string][]string{
	"sh":      {"fails", "within", "background", "until", "stop", "timeout", "skip"},
	"console": {"contains", "skip"},
	"":        {"file", "part", "skip"},
}

// check refuses words that do not belong to the block's kind, and blocks without a purpose.
func (b *Block) check(words []string) error {
	kind := b.Lang
	if kind != "sh" && kind != "console" {
		kind = ""
	}
	for _, word := range words {
		key, _, _ := strings.Cut(word, "=")
		if !slices.Contains(allowed[kind], key) {
			return fmt.Errorf("the word %q means nothing on a %s block", key, b.Lang)
		}
	}
	switch {
	case kind == "" && b.File == "" && b.Skip == "":
		return fmt.Errorf("a %s block that is neither executed, compared, included nor skipped: "+
			"give it file=PATH or skip=\"REASON\"", b.Lang)
	case b.Part && b.File == "":
		return errors.New("part needs file=PATH")
	case b.Until != "" && b.Background == "":
		return errors.New("until needs background=NAME")
	case b.Background != "" && (b.Fails || b.Within > 0 || b.Stop != ""):
		return errors.New("a background block cannot have fails, within or stop")
	case b.Within > 0:
		b.Within = max(b.Within, leastPatience)
	}
	b.Timeout = max(b.Timeout, leastPatience)
	return nil
}

// raw returns the source lines of a node, without their last line break.
func raw(n ast.Node, source []byte) string {
	var s strings.Builder
	for i := range n.Lines().Len() {
		line := n.Lines().At(i)
		s.Write(line.Value(source))
	}
	return strings.TrimRight(s.String(), "\n")
}

// table returns the source lines of a table. The parser's table has only the lines of its cells.
func table(n ast.Node, source []byte) string {
	start, end := len(source), 0
	_ = ast.Walk(n, func(cell ast.Node, _ bool) (ast.WalkStatus, error) {
		if t, ok := cell.(*ast.Text); ok {
			start, end = min(start, t.Segment.Start), max(end, t.Segment.Stop)
		}
		return ast.WalkContinue, nil
	})
	start = bytes.LastIndexByte(source[:start], '\n') + 1
	if i := bytes.IndexByte(source[end:], '\n'); i >= 0 {
		end += i
	}
	return string(source[start:end])
}

// marker returns the marker before the first text of a list item, "" for other text.
func marker(n ast.Node) string {
	item, ok := n.Parent().(*ast.ListItem)
	if !ok || n.PreviousSibling() != nil {
		return ""
	}
	list := item.Parent().(*ast.List)
	if !list.IsOrdered() {
		return "- "
	}
	number := list.Start
	for before := item.PreviousSibling(); before != nil; before = before.PreviousSibling() {
		number++
	}
	return fmt.Sprintf("%d. ", number)
}

// quoted reports whether a text is in a block quote.
func quoted(n ast.Node) bool {
	for ; n != nil; n = n.Parent() {
		if n.Kind() == ast.KindBlockquote {
			return true
		}
	}
	return false
}

// Until returns the page up to the heading with the given text, or the whole page when it has no such heading.
func (p *Page) Until(heading string) *Page {
	i := slices.IndexFunc(p.Parts, func(part Part) bool { return part.Heading && part.Prose == heading })
	if i < 0 {
		return p
	}
	return &Page{Path: p.Path, Parts: p.Parts[:i]}
}

func lineOf(source []byte, offset int) int {
	return strings.Count(string(source[:offset]), "\n") + 1
}

// Translations is the folder of the checkout that has the pages in other languages: i18n/ja/00-env/README.md.
const Translations = "i18n"

// English returns the path of the page that a page translates, or its own path.
func English(path string) string {
	before, after, found := strings.Cut(filepath.ToSlash(path), "/"+Translations+"/")
	if _, relative, _ := strings.Cut(after, "/"); found {
		english := filepath.Join(before, relative)
		if _, err := os.Stat(english); err == nil {
			return english
		}
	}
	return path
}

// topPages are pages in the folder of the checkout beside its README.md.
var topPages = []string{"GLOSSARY.md", "SLIDES.md", "TEACHING.md"}

// Find returns the pages of a repository: GLOSSARY.md, SLIDES.md, TEACHING.md, and every README.md that is not hidden,
// not made at run time and not below a folder named testdata.
func Find(root string) ([]string, error) {
	var pages []string
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() && path != root && (name[0] == '.' || name == "testdata" || name == "node_modules" ||
			filepath.Dir(path) == root && slices.Contains([]string{"bin", "work", "out", Translations}, name)) {
			return filepath.SkipDir
		}
		if name == "README.md" || filepath.Dir(path) == root && slices.Contains(topPages, name) {
			pages = append(pages, path)
		}
		return nil
	})
	return pages, err
}
