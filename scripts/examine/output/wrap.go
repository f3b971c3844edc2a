package output

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// Wrap breaks the lines of a text at columns: at blanks and, in Chinese and Japanese, where Unicode permits a break. A
// Korean word, and a word that does not fit, as in JSON, stays whole.
func Wrap(text string, columns int) string {
	var out strings.Builder
	for line := range strings.SplitAfterSeq(text, "\n") {
		column, blanks := 0, ""
		for _, word := range words(strings.TrimSuffix(line, "\n")) {
			bare := strings.TrimRight(word, " \t")
			width := Width(blanks) + Width(bare)
			if column > 0 && column+width > columns {
				out.WriteByte('\n')
				column, blanks = 0, ""
				width = Width(bare)
			}
			out.WriteString(blanks + bare)
			column += width
			blanks = word[len(bare):]
		}
		if strings.HasSuffix(line, "\n") {
			out.WriteByte('\n')
		}
	}
	return out.String()
}

// Width is the number of columns of a text: a Chinese character has two.
func Width(text string) int { return uniseg.StringWidth(text) }

// word matches a word with the blanks after it, or the blanks at the beginning of a line.
var word = regexp.MustCompile(`\S+\s*|\s+`)

// words returns the parts of a line between which it may be broken, each with the blanks after it.
func words(line string) (all []string) {
	for _, rest := range word.FindAllString(line, -1) {
		part, segment, state := "", "", -1
		for rest != "" {
			segment, rest, _, state = uniseg.FirstLineSegmentInString(rest, state)
			part += segment
			last, _ := utf8.DecodeLastRuneInString(segment)
			next, _ := utf8.DecodeRuneInString(rest)
			if rest == "" || isWide(last) || isWide(next) {
				all, part = append(all, part), ""
			}
		}
	}
	return all
}

// isWide reports whether a character is of a script that has no blanks between words, or a punctuation mark of it.
func isWide(r rune) bool {
	mark := r >= 0x3000 && r <= 0x303f || r >= 0xff00 && r <= 0xff60
	return mark || unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana)
}
