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
	if was, is := found(numbers, bare), found(numbers, bareTranslated); !slices.Equal(was, withoutWords(bare, was, is)) {
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

// words are the English words that another language may write as a number.
var words = regexp.MustCompile(`(?i)\b(a|an|one|once|two|twice|three|four|five|six|seven|eight|nine|ten)\b`)

// withoutWords returns the numbers of a translation without those that are words in the English text.
func withoutWords(text string, was, is []string) []string {
	as := map[string]string{"a": "1", "an": "1", "one": "1", "once": "1", "two": "2", "twice": "2", "three": "3",
		"four": "4", "five": "5", "six": "6", "seven": "7", "eight": "8", "nine": "9", "ten": "10"}
	for _, word := range found(words, text) {
		number := as[strings.ToLower(word)]
		if i := slices.Index(is, number); i >= 0 && len(is) > len(was) {
			is = slices.Delete(is, i, i+1)
		}
	}
	return is
}

// found returns what an expression matches, sorted: a translation may have another order.
func found(of *regexp.Regexp, text string) []string {
	all := of.FindAllString(text, -1)
	slices.Sort(all)
	return all
}
