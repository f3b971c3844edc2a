package output

import (
	"fmt"
	"strings"
	"testing"
)

func TestTheFirstAndTheLastMegabyte(t *testing.T) {
	for _, size := range []int{100, 4096, Kept, 5 * Kept} {
		var b Buffer
		fmt.Fprintln(&b, "first")
		mark := b.Total()
		for n := 0; n < 5*Kept; n += size {
			fmt.Fprint(&b, strings.Repeat(".", size))
		}
		total := b.Total()
		fmt.Fprintln(&b, "last")
		out := b.String()
		left := b.Total() - 2*Kept
		if !strings.HasPrefix(out, "first\n...") || !strings.HasSuffix(out, "...last\n") || len(out) > 2*Kept+200 ||
			!strings.Contains(out, fmt.Sprintf(".\n… %d bytes of output are left out here", left)) {
			t.Errorf("in pieces of %d, %d bytes are kept of %d: %.20q…", size, len(out), b.Total(), out)
		}
		if got := b.Since(total); got != "last\n" {
			t.Errorf("the last words are %.20q", got)
		}
		if got := b.Since(mark); !strings.HasPrefix(got, "....") || !strings.HasSuffix(got, "...last\n") {
			t.Errorf("after the first words there is %.20q…", got)
		}
	}
}

func TestLittleIsKeptWhole(t *testing.T) {
	var b Buffer
	want := strings.Repeat("0123456789", Kept/5) // 2 MiB at most
	fmt.Fprint(&b, want)
	if b.String() != want || b.Since(7) != want[7:] || b.Since(int64(len(want))) != "" || b.Since(1<<40) != "" {
		t.Errorf("%d bytes became %d", len(want), len(b.String()))
	}
}
