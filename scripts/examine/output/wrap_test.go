package output

import (
	"strings"
	"testing"

	"github.com/rivo/uniseg"
)

func TestLinesAreBroken(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"words":                 {"one two three", "one two\nthree"},
		"a word in two parts":   {"one-two three-four/five", "one-two\nthree-four/five"},
		"a blank in brackets":   {"f(one{ … })", "f(one{\n… })"},
		"lines and blanks":      {"one\n\n    four\n", "one\n\n    four\n"},
		"Chinese":               {"控制器寫入狀態。再寫", "控制器\n寫入狀\n態。再\n寫"},
		"no mark begins a line": {"控制器。控制", "控制\n器。控\n制"},
		"a word in Japanese":    {"各Reconcileは", "各\nReconcile\nは"},
		"Korean":                {"오퍼레이터는 상태를", "오퍼레이터는\n상태를"},
	} {
		columns := 7
		t.Run(name, func(t *testing.T) {
			if got := Wrap(test.text, columns); got != test.want {
				t.Errorf("%q, wanted %q", got, test.want)
			}
		})
	}
}

func TestAParagraphWithoutBlanksFits(t *testing.T) {
	text := strings.Repeat("コントローラーは、子を作ります。", 30)
	got := Wrap(text, 96)
	if strings.ReplaceAll(got, "\n", "") != text {
		t.Errorf("a character is lost:\n%s", got)
	}
	for line := range strings.Lines(got) {
		if width := uniseg.StringWidth(strings.TrimSuffix(line, "\n")); width > 96 || strings.HasPrefix(line, "。") {
			t.Errorf("%d columns: %s", width, line)
		}
	}
}
