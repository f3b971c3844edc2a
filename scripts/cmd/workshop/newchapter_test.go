package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"example.com/operator-workshop/scripts/internal/chapter"
	"example.com/operator-workshop/scripts/internal/page"
	"example.com/operator-workshop/scripts/internal/testkit"
)

// copied makes a checkout whose chapters are links, and whose other files are copies.
func copied(t *testing.T) workshop {
	t.Helper()
	from, err := filepath.Abs(filepath.Join("..", "..", ".."))
	testkit.Must(t, err)
	w := workshop{root: t.TempDir()}
	w.state = filepath.Join(w.root, ".workshop")
	entries, err := os.ReadDir(from)
	testkit.Must(t, err)
	for _, entry := range entries {
		switch name := entry.Name(); {
		case name == "README.md" || name == "scripts":
		case strings.HasPrefix(name, "."), name == "bin", name == "work", name == "out":
		default:
			err = os.Symlink(filepath.Join(from, name), filepath.Join(w.root, name))
		}
		testkit.Must(t, err)
	}
	for _, file := range []string{"README.md", "scripts/sync.yaml", "scripts/versions.yaml", "scripts/blocks.yaml",
		"scripts/tools/go.mod", "scripts/tools/go.sum"} {
		testkit.Write(t, filepath.Join(w.root, file), testkit.Read(t, filepath.Join(from, file)))
	}
	return w
}

func TestANewChapterIsKnownEverywhere(t *testing.T) {
	const name = "07-new-one"
	w := copied(t)
	testkit.Must(t, w.newChapter(t.Context(), t.Output(), name))
	if all, err := chapter.All(w.root); err != nil || !slices.Contains(all, name) {
		t.Errorf("the chapters are %v, %v", all, err)
	}
	if dir, err := chapter.Page(w.root, "07"); err != nil || dir != name {
		t.Errorf("CH=07 is %q, %v", dir, err)
	}
	if err := errors.Join(chapter.CheckVersions(w.root), chapter.CheckCopies(w.root)); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(w.root, name, "internal", "testenv", "testenv.go")); err != nil {
		t.Error(err)
	}
	p, err := page.Parse(filepath.Join(w.root, name, "README.md"))
	testkit.Must(t, err)
	recorded, err := w.recordedBlocks()
	if n := page.Plan(p).Executed; err != nil || n != 3 || recorded[name+"/README.md"] != n {
		t.Errorf("%d blocks of the page are executed, %d are recorded, %v", n, recorded[name+"/README.md"], err)
	}
	readme, err := os.ReadFile(filepath.Join(w.root, "README.md"))
	if err != nil || !strings.Contains(string(readme), "\n| [06-deploy]") ||
		!strings.Contains(string(readme), "|\n| ["+name+"]("+name+"/README.md) |") {
		t.Errorf("README.md has no row for it: %v", err)
	}
	for _, target := range []string{"help", "verify"} {
		cmd := exec.CommandContext(t.Context(), "make", "-C", filepath.Join(w.root, name), target)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("make %s: %v\n%s", target, err, out)
		}
	}
	if info, err := os.Stat(filepath.Join(w.root, name, "kind.sh")); err != nil || info.Mode()&0o111 == 0 {
		t.Errorf("kind.sh cannot be run: %v", err)
	}
}

func TestANewChapterThatCannotBeFinishedLeavesNothing(t *testing.T) {
	w := copied(t)
	files := func() (text string) {
		for _, file := range []string{"README.md", "scripts/sync.yaml", "scripts/blocks.yaml"} {
			data := testkit.Read(t, filepath.Join(w.root, file))
			text += data
		}
		return text
	}
	before := files()
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // Ctrl-C
	if err := w.newChapter(ctx, t.Output(), "07-new-one"); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(w.root, "07*")); len(left) > 0 || files() != before {
		t.Errorf("left behind: %q; README.md, sync.yaml or blocks.yaml are others: %t", left, files() != before)
	}
}

func TestNamesThatNoChapterMayHave(t *testing.T) {
	w := copied(t)
	for name, want := range map[string]string{
		"":              "is called like 07-something",
		"something":     "is called like 07-something",
		"7-something":   "is called like 07-something",
		"07-Something":  "is called like 07-something",
		"07-a/../../b":  "is called like 07-something",
		"07-":           "is called like 07-something",
		"04-other":      "the number 04 is taken by 04-controller-runtime",
		"06-deploy":     "the number 06 is taken by 06-deploy",
		"07-some thing": "is called like 07-something",
	} {
		err := w.newChapter(t.Context(), t.Output(), name)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("NAME=%s: %v, want %q", name, err, want)
		}
	}
	left, err := filepath.Glob(filepath.Join(w.root, "07*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
