package output

import "testing"

func TestATerminalObeysNoText(t *testing.T) {
	for text, want := range map[string]string{
		"a name":                     "a name",
		"Jörg 例 ✓":                   "Jörg 例 ✓",
		"\x1b[2J\x1b]0;title\a":      `\x1b[2J\x1b]0;title\a`,
		"a\nb\tc\r":                  `a\nb\tc\r`,
		"\xff\x9b1m":                 `\xff\x9b1m`,
		"turned \u202e round\u2028":  `turned \u202e round\u2028`,
		"\u009b1m, one byte shorter": `\u009b1m, one byte shorter`,
	} {
		if is := Line(text); is != want {
			t.Errorf("%q: %q, want %q", text, is, want)
		}
	}
	if is, want := Lines("a\n\tb\x1b[1m\n"), "a\n\tb\\x1b[1m\n"; is != want {
		t.Errorf("%q, want %q", is, want)
	}
}
