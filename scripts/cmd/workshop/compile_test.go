package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"example.com/operator-workshop/scripts/internal/testkit"
)

// TestACopiedProgramOfOtherSourcesIsCompiledAgain has a program that is newer than its sources, and of other sources.
func TestACopiedProgramOfOtherSourcesIsCompiledAgain(t *testing.T) {
	w := workshop{root: t.TempDir()}
	main := filepath.Join(w.root, "tiny", "main.go")
	program := filepath.Join(w.bin(), "tiny")
	testkit.Write(t, filepath.Join(w.root, "tiny", "go.mod"), "module example.com/tiny\n")
	testkit.Write(t, main, "package main\n\nfunc main() {}\n")
	written := func() time.Time {
		t.Helper()
		testkit.Must(t, w.compile(t.Context(), "tiny", ".", "tiny", "tiny"))
		info, err := os.Stat(program)
		testkit.Must(t, err)
		return info.ModTime()
	}
	written()
	later := time.Now().Add(time.Hour)
	testkit.Must(t, os.Chtimes(program, later, later))
	if got := written(); !got.Equal(later) {
		t.Error("the sources are as they were, and the program was compiled again")
	}
	testkit.Write(t, main, "package main\n\nfunc main() { println(1) }\n")
	if got := written(); got.Equal(later) {
		t.Error("the program is of other sources, and was not compiled again")
	}
}
