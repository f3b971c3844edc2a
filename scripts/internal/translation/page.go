package translation

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/chai2010/gettext-go/po"

	pages "example.com/operator-workshop/scripts/internal/page"
)

// Folder has a folder for each language. It repeats the folders of the checkout, with a PO file and a page for each page.
const Folder = pages.Translations

// Untranslated marks a piece of prose that has no translation yet, or no longer.
const Untranslated = "[en] "

// A Translation is the prose of one page in one language.
type Translation struct {
	Root, Language, Page string // Page is the English page: 00-env/README.md
	segments             []segment
	source               []byte
	texts                map[string]string
	others               []string  // the pages with a translation
	patterns             []pattern // of a catalogue
}

// Load returns the translations of a language.
func Load(root, language string) (all []*Translation, err error) {
	dir := filepath.Join(root, Folder, language)
	var found []string
	err = filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(file) == ".po" && !isCatalogue(file) {
			relative, _ := filepath.Rel(dir, file)
			found = append(found, filepath.ToSlash(strings.TrimSuffix(relative, ".po"))+".md")
		}
		return err
	})
	for _, page := range found {
		t, failed := Open(root, language, page)
		if failed != nil {
			return nil, failed
		}
		t.others = found
		all = append(all, t)
	}
	return all, err
}

// Open returns the translation of a page. A page without a PO file has no translated text.
func Open(root, language, page string) (*Translation, error) {
	source, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		return nil, fmt.Errorf("%s is a translation of a page that is not there: %w", language, err)
	}
	t := &Translation{Root: root, Language: language, Page: page, source: source, segments: segments(source)}
	return t, t.read()
}

// read reads the PO file, if there is one.
func (t *Translation) read() error {
	t.texts = map[string]string{}
	file, err := po.LoadFile(t.file(".po"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", t.file(".po"), err)
	}
	for _, m := range file.Messages {
		t.texts[m.MsgId] = m.MsgStr
	}
	return nil
}

func (t *Translation) file(extension string) string {
	return filepath.Join(t.Root, Folder, t.Language, strings.TrimSuffix(t.Page, ".md")+extension)
}

// Made returns the path of the page in this language.
func (t *Translation) Made() string { return t.file(".md") }

// WritePO writes the PO file anew: the prose of the page in its order, with the translations that there are.
func (t *Translation) WritePO() error {
	header := po.Header{Language: t.Language, ContentType: "text/plain; charset=UTF-8", ContentTransferEncoding: "8bit"}
	var b strings.Builder
	fmt.Fprintln(&b, header.String())
	seen := map[string]bool{}
	for _, s := range t.segments {
		if !s.prose || seen[s.text] || pages.Labels[t.Language][s.text] != "" {
			continue
		}
		seen[s.text] = true
		m := po.Message{MsgId: s.text, MsgStr: t.texts[s.text], Comment: po.Comment{ExtractedComment: s.from}}
		fmt.Fprintln(&b, m.String())
	}
	if err := os.MkdirAll(filepath.Dir(t.file(".po")), 0o755); err != nil {
		return err
	}
	return os.WriteFile(t.file(".po"), []byte(b.String()), 0o644)
}

// Stale returns the prose that has no translation.
func (t *Translation) Stale() (all []string) {
	for _, s := range t.segments {
		if _, ok := t.translated(s); !ok {
			all = append(all, fmt.Sprintf("%s:%d: %s", t.Page, s.line, s.text))
		}
	}
	return all
}

// Obsolete returns the texts of the PO file that the source no longer has.
func (t *Translation) Obsolete() (all []string) {
	for _, text := range slices.Sorted(maps.Keys(t.texts)) {
		if text != "" && !slices.ContainsFunc(t.segments, func(s segment) bool { return s.text == text }) {
			all = append(all, fmt.Sprintf("%s: %s", t.Page, text))
		}
	}
	return all
}

func (t *Translation) translated(s segment) (string, bool) {
	if label := pages.Labels[t.Language][s.text]; s.label && label != "" {
		return label, true
	}
	if !s.prose {
		return s.text, true
	}
	translated := t.texts[s.text]
	return translated, translated != ""
}

// Text returns the page in this language, for its place below Folder.
func (t *Translation) Text() string {
	slugs := map[string]int{}
	text := t.page(func(s segment, translated string) string {
		translated = codeOrDestination.ReplaceAllStringFunc(translated, t.link)
		if s.heading {
			return fmt.Sprintf(`<a id="%s"></a>%s`, Anchor(s.text, slugs), translated)
		}
		return translated
	})
	first, rest, _ := strings.Cut(text, "\n")
	note := fmt.Sprintf("<!-- Made by `make sync` from %s and %s: change those. -->", t.Page,
		path.Base(filepath.ToSlash(t.file(".po"))))
	return first + "\n\n" + note + "\n" + rest
}

// InPlace returns the page in this language, for the place of the English page: its links are those of the English page.
func (t *Translation) InPlace() string {
	return t.page(func(_ segment, translated string) string { return translated })
}

// Exists reports whether there is a translation.
func (t *Translation) Exists() bool { return len(t.texts) > 0 }

// Title returns the first heading of the page in this language.
func (t *Translation) Title() string {
	at := slices.IndexFunc(t.segments, func(s segment) bool { return s.heading })
	if at < 0 {
		return ""
	}
	title, _ := t.translated(t.segments[at])
	return title
}

// page returns the page with each piece of prose as written.
func (t *Translation) page(written func(s segment, translated string) string) string {
	var b strings.Builder
	at := 0
	for _, s := range t.segments {
		b.Write(t.source[at:s.start])
		at = s.stop
		translated, ok := t.translated(s)
		if !ok {
			translated = Untranslated + s.text
		}
		b.WriteString(written(s, translated))
	}
	b.Write(t.source[at:])
	return b.String()
}

var (
	destination       = regexp.MustCompile(`\]\([^)\s]+\)`)
	codeOrDestination = regexp.MustCompile(code.String() + "|" + destination.String())
	notInSlug         = regexp.MustCompile(`[^\pL\pN\-_ ]`)
)

// Anchor returns the anchor that GitHub gives a heading. The map counts the headings that a page has had so far.
func Anchor(heading string, seen map[string]int) string {
	s := strings.ReplaceAll(notInSlug.ReplaceAllString(strings.ToLower(heading), ""), " ", "-")
	n := seen[s]
	if seen[s]++; n > 0 {
		s = fmt.Sprintf("%s-%d", s, n)
	}
	return s
}

// link makes a link lead from the page in this language: to another page in the language, or to the English file.
func (t *Translation) link(text string) string {
	if text[0] == '`' {
		return text
	}
	to := text[2 : len(text)-1]
	if strings.HasPrefix(to, "#") || strings.Contains(to, "://") || strings.HasPrefix(to, "mailto:") {
		return text
	}
	to, anchor, found := strings.Cut(to, "#")
	target := path.Join(path.Dir(t.Page), to)
	page := target
	if slices.Contains(t.others, path.Join(target, "README.md")) {
		page = path.Join(target, "README.md")
	}
	if slices.Contains(t.others, page) {
		target = path.Join(Folder, t.Language, page)
	}
	relative, err := filepath.Rel(path.Join(Folder, t.Language, path.Dir(t.Page)), target)
	if err != nil {
		return text
	}
	if found {
		relative += "#" + anchor
	}
	return "](" + filepath.ToSlash(relative) + ")"
}
