package translation

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Catalogues are the names of the PO files with sentences of programs.
var Catalogues = []string{"window", "exercises"}

func isCatalogue(file string) bool {
	return slices.Contains(Catalogues, strings.TrimSuffix(filepath.Base(file), ".po"))
}

// IsCatalogue reports whether the translation is that of sentences.
func (t *Translation) IsCatalogue() bool { return slices.Contains(Catalogues, t.Page) }

// A Sentence is a text of a program. {1}, {2} and so on stand for its values.
type Sentence struct {
	Text string
	// From is the file with the sentence.
	From string
}

var (
	// marked matches a sentence in the source of a program: t("…") of the browser's scripts, .T "…" of HTML templates,
	// and Mark("…") and Sayf("…") of Go.
	marked = regexp.MustCompile(`(?:\bt\(|\.T |\bMark\(|\bSayf\()\s*("(?:[^"\\\n]|\\.)*")`)
	verb   = regexp.MustCompile(`%(?:\[\d\])?[-+# 0-9.]*[a-zA-Z]`)
	value  = regexp.MustCompile(`\{\d\}`)
)

// Mark returns a text as it is. It marks a sentence that a catalogue must have.
func Mark(text string) string { return text }

// Marked returns the marked sentences of files, which are patterns of filepath.Glob in the checkout.
func Marked(root string, patterns ...string) (all []Sentence, err error) {
	for _, pattern := range patterns {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			source, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			from, _ := filepath.Rel(root, file)
			for _, match := range marked.FindAllSubmatch(source, -1) {
				text, err := strconv.Unquote(string(match[1]))
				if err != nil {
					return nil, fmt.Errorf("%s: %s: %w", file, match[1], err)
				}
				if filepath.Ext(file) == ".go" {
					text = Template(text)
				}
				all = append(all, Sentence{text, filepath.ToSlash(from)})
			}
		}
	}
	return all, nil
}

// Template returns the format of a Go program as a sentence: "%s of %d" is "{1} of {2}".
func Template(format string) string {
	n := 0
	sentence := verb.ReplaceAllStringFunc(format, func(string) string {
		n++
		return fmt.Sprintf("{%d}", n)
	})
	return strings.ReplaceAll(sentence, "%%", "%")
}

// Catalogue returns the translation of sentences: for example i18n/ja/window.po. Without sentences it is for Say alone.
func Catalogue(root, language, name string, sentences []Sentence) (*Translation, error) {
	t := &Translation{Root: root, Language: language, Page: name}
	for i, s := range sentences {
		t.segments = append(t.segments, segment{text: s.Text, line: i + 1, prose: s.Text != "", from: s.From})
	}
	return t, errors.Join(t.read(), t.compile())
}

// A pattern matches the sentences of a template.
type pattern struct {
	match *regexp.Regexp
	to    string
	size  int // of the text around the values
}

// compile prepares the templates whose translations have the same values. When several match, the one with most text is
// meant; one without letters, as "{1}:", would match too much.
func (t *Translation) compile() error {
	for text, to := range t.texts {
		if !value.MatchString(text) || !letters.MatchString(text) || !haveSameValues(text, to) {
			continue
		}
		around := value.Split(text, -1)
		for i := range around {
			around[i] = regexp.QuoteMeta(around[i])
		}
		match, err := regexp.Compile("^" + strings.Join(around, "(.*?)") + "$")
		if err != nil {
			return err
		}
		t.patterns = append(t.patterns, pattern{match, to, len(value.ReplaceAllString(text, ""))})
	}
	slices.SortFunc(t.patterns, func(a, b pattern) int {
		return cmp.Or(cmp.Compare(b.size, a.size), cmp.Compare(a.match.String(), b.match.String()))
	})
	return nil
}

func haveSameValues(a, b string) bool { return slices.Equal(found(value, a), found(value, b)) }

// Say returns a text in the language, line by line. It finds a finished sentence by its template: programs that judge
// an operator send and keep English sentences, and what recognises a sentence reads English. Code, which is indented,
// and a sentence without a translation stay as they are.
func (t *Translation) Say(text string) string { return t.say(text, false) }

// SayWhole translates also the values of a sentence that are sentences with values themselves.
func (t *Translation) SayWhole(text string) string { return t.say(text, true) }

func (t *Translation) say(text string, whole bool) string {
	if t == nil {
		return text
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if !strings.HasPrefix(line, " ") {
			lines[i] = t.sentence(line, whole)
		}
	}
	return strings.Join(lines, "\n")
}

// Sayf returns a formatted text in the language.
func (t *Translation) Sayf(format string, args ...any) string {
	sentence, to := Template(format), ""
	if t != nil {
		to = t.texts[sentence]
	}
	if to == "" || !haveSameValues(sentence, to) {
		return fmt.Sprintf(format, args...)
	}
	verbs := verb.FindAllString(format, -1)
	return value.ReplaceAllStringFunc(to, func(name string) string {
		at := name[1] - '1'
		return fmt.Sprintf(verbs[at], args[at])
	})
}

func (t *Translation) sentence(text string, whole bool) string {
	if to := t.texts[text]; to != "" {
		return to
	}
	for _, p := range t.patterns {
		if values := p.match.FindStringSubmatch(text); values != nil {
			return value.ReplaceAllStringFunc(p.to, func(name string) string {
				text := values[name[1]-'0']
				if whole {
					return t.sentence(text, true)
				}
				return cmp.Or(t.texts[text], text)
			})
		}
	}
	return text
}

// Words returns the translations by their sentences.
func (t *Translation) Words() map[string]string {
	if t == nil {
		return map[string]string{}
	}
	return t.texts
}
