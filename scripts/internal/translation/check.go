package translation

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

var (
	code    = regexp.MustCompile("`+[^`]+?`+")
	numbers = regexp.MustCompile(`[0-9][0-9.,:]*[0-9]|[0-9]`)
	comment = regexp.MustCompile(`<!--.*?-->`)
	// narrow matches a mark of half width right after a character of full width.
	narrow = regexp.MustCompile(`[\p{Han}\p{Hiragana}\p{Katakana}][,;:!?]( |$)`)
)

// Terms are the translations of terms in one language, by the English term in lower case. Each translation of a text with
// the term must have one of the words.
type Terms map[string][]string

// LoadTerms reads the terms of a language: for example those of i18n/ja/terms.yaml.
func LoadTerms(root, language string) (terms Terms, err error) {
	file := filepath.Join(root, Folder, language, "terms.yaml")
	data, err := os.ReadFile(file)
	if err == nil {
		err = yaml.UnmarshalStrict(data, &terms)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return terms, nil
}

// Faults returns what differs between a text and its translation, although it is the same in each language: code, links,
// numbers, comments and terms.
func (t *Translation) Faults(terms Terms) (all []string) {
	for _, s := range t.segments {
		translated, ok := t.texts[s.text]
		if !ok || translated == "" || !s.prose {
			continue
		}
		for _, fault := range faults(s.text, translated, terms) {
			all = append(all, fmt.Sprintf("%s:%d: %s: %s", t.Page, s.line, fault, translated))
		}
	}
	return all
}

func faults(text, translated string, terms Terms) (all []string) {
	for _, same := range []struct {
		name string
		of   *regexp.Regexp
	}{{"code", code}, {"links", destination}, {"comments", comment}, {"values", value}} {
		if was, is := found(same.of, text), found(same.of, translated); !slices.Equal(was, is) {
			all = append(all, fmt.Sprintf("%s %q became %q", same.name, was, is))
		}
	}
	bare, bareTranslated := code.ReplaceAllString(text, ""), code.ReplaceAllString(translated, "")
	bare, bareTranslated = destination.ReplaceAllString(bare, ""), destination.ReplaceAllString(bareTranslated, "")
	if was, is := found(numbers, bare), found(numbers, bareTranslated); !haveSameNumbers(bare, was, is) {
		all = append(all, fmt.Sprintf("numbers %q became %q", was, is))
	}
	if narrow.MatchString(bareTranslated) {
		all = append(all, fmt.Sprintf("a mark of half width: %q", narrow.FindString(bareTranslated)))
	}
	lower := strings.ToLower(bare)
	for _, term := range slices.Sorted(maps.Keys(terms)) {
		word := regexp.MustCompile(`\b` + regexp.QuoteMeta(term) + `s?\b`)
		if word.MatchString(lower) && !slices.ContainsFunc(terms[term], func(to string) bool {
			return strings.Contains(strings.ToLower(translated), strings.ToLower(to))
		}) {
			all = append(all, fmt.Sprintf("%q must be %s", term, strings.Join(terms[term], " or ")))
		}
	}
	return all
}

// numberWords are the English words that another language may write as numbers.
var numberWords = map[string]string{"a": "1", "an": "1", "one": "1", "once": "1", "two": "2", "twice": "2", "three": "3",
	"four": "4", "five": "5", "six": "6", "seven": "7", "eight": "8", "nine": "9", "ten": "10", "eleven": "11", "twelve": "12",
	"fifteen": "15", "twenty": "20", "thirty": "30", "sixty": "60"}

var words = regexp.MustCompile(`[a-z]+`)

// haveSameNumbers reports whether a translation has the numbers of a text, and no others but those that are words in the
// text.
func haveSameNumbers(text string, was, is []string) bool {
	rest := slices.Clone(is)
	take := func(number string) bool {
		i := slices.Index(rest, number)
		if i >= 0 {
			rest = slices.Delete(rest, i, i+1)
		}
		return i >= 0
	}
	for _, number := range was {
		if !take(number) {
			return false
		}
	}
	for _, word := range words.FindAllString(strings.ToLower(text), -1) {
		take(numberWords[word])
	}
	return len(rest) == 0
}

// found returns what an expression matches, sorted: a translation may have another order.
func found(of *regexp.Regexp, text string) []string {
	all := of.FindAllString(text, -1)
	slices.Sort(all)
	return all
}
