package output

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Line returns a text of a client or a checked program as a part of a line. It writes an escape sequence, a line break,
// and any other character that a terminal obeys or hides as Go does: \x1b, \n.
func Line(text string) string { return printable(text, "") }

// Lines does the same for a text of several lines.
func Lines(text string) string { return printable(text, "\n\t") }

func printable(text, keep string) string {
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[0])
		case unicode.IsPrint(r), strings.ContainsRune(keep, r):
			b.WriteRune(r)
		default:
			quoted := strconv.QuoteRune(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		text = text[size:]
	}
	return b.String()
}
