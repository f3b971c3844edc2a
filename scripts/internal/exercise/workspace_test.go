package exercise

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"example.com/operator-workshop/scripts/internal/testkit"
)

var checkout = filepath.Join("..", "..", "..")

// newCourse returns a course with an empty work folder, and a clock that stands still.
func newCourse(t *testing.T) Course {
	t.Helper()
	root, err := filepath.Abs(checkout)
	testkit.Must(t, err)
	all, err := Load(root)
	testkit.Must(t, err)
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	none := func(context.Context) (string, error) { return "", errors.New("this test has no control plane") }
	return Course{All: all, Plane: none, Workspace: Workspace{Root: root, Work: filepath.Join(t.TempDir(), "work"),
		Now: func() time.Time { return now }},
		Judge: Judge{Root: root, Bin: filepath.Join(root, "bin"), Env: append(os.Environ(), "GOFLAGS=-mod=readonly -trimpath",
			"GOWORK=off", "CGO_ENABLED=0")}}
}

func find(t *testing.T, c Course, id string) Exercise {
	t.Helper()
	e, err := Find(c.All, id)
	testkit.Must(t, err)
	return e
}

func TestWhatIsOverwrittenIsSavedFirst(t *testing.T) {
	c := newCourse(t)
	e := find(t, c, "4.3")
	if saved, err := c.Goto(e, Always); err != nil || saved != "" {
		t.Fatalf("an empty folder: saved %q, %v", saved, err)
	}
	mine := filepath.Join(c.Dir(e), "main.go")
	for n, want := range []string{"work/.saved/2026-01-02T03-04-05/04-controller-runtime",
		"work/.saved/2026-01-02T03-04-05-2/04-controller-runtime"} {
		text := strings.Repeat("// mine\n", n+1)
		testkit.Must(t, os.WriteFile(mine, []byte(text), 0o600))
		testkit.Must(t, os.WriteFile(filepath.Join(c.Dir(e), "other.go"), []byte("package main\n"), 0o600))
		saved, err := c.Goto(e, Always)
		if err != nil || saved != want {
			t.Fatalf("saved in %q, want %q: %v", saved, want, err)
		}
		copied, err := os.ReadFile(filepath.Join(filepath.Dir(c.Work), saved, "main.go"))
		if err != nil || string(copied) != text {
			t.Errorf("the copy is %q, want %q: %v", copied, text, err)
		}
		if _, err := os.Stat(filepath.Join(c.Dir(e), "other.go")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("other.go is not of the starter, and is left: %v", err)
		}
	}
}

// A message names older copies only when there are some.
// The loop shows a program that go run has started by the name of its package.
func TestTheReadersProgramHasAName(t *testing.T) {
	c := newCourse(t)
	e := find(t, c, "4.3")
	_, err := c.Goto(e, Always)
	testkit.Must(t, err)
	list := exec.Command("go", "list", ".")
	list.Dir, list.Env = c.Dir(e), c.Judge.Env
	out, err := list.CombinedOutput()
	if name := path.Base(strings.TrimSpace(string(out))); err != nil || name != "my-operator" {
		t.Errorf("go run names the program %q: %v", name, err)
	}
}

func TestADeletedFileMayHaveOlderCopies(t *testing.T) {
	c := newCourse(t)
	e := find(t, c, "04.3")
	starter := map[string][]byte{e.File: []byte("package main\n")}
	for _, saved := range []bool{false, true} {
		if _, err := c.Put(e, starter); err != nil {
			t.Fatal(err)
		}
		testkit.Must(t, os.Remove(filepath.Join(c.Dir(e), e.File)))
		if _, err := c.Sound(e); err == nil || strings.Contains(err.Error(), "make restore") != saved {
			t.Errorf("saved before: %t: %v", saved, err)
		}
		starter[e.File] = []byte("package main // changed\n")
		for range 2 {
			if _, err := c.Put(e, starter); err != nil {
				t.Fatal(err)
			}
			starter[e.File] = append(starter[e.File], '\n')
		}
	}
}

func TestFilesThatCannotBeJudgedHaveAWayOn(t *testing.T) {
	starter := "package main\n\nfunc main() {}\n"
	for name, test := range map[string]struct {
		files       map[string]string
		err, note   string
		andCompiles bool
	}{
		"as it should be":  {files: map[string]string{"main.go": starter}},
		"deleted":          {files: map[string]string{}, err: "is not there; `make reset EX=04.3`"},
		"renamed":          {files: map[string]string{"operator.go": starter}},
		"empty":            {files: map[string]string{"main.go": "\n"}, err: "is empty, or only half saved"},
		"with a zero byte": {files: map[string]string{"main.go": "package\x00"}, err: "zero byte"},
		"with merge marks": {files: map[string]string{"main.go": "package main\n<<<<<<< HEAD\n"},
			err: "main.go:2: a merge left its marks"},
		"Windows line ends": {files: map[string]string{"main.go": strings.ReplaceAll(starter, "\n", "\r\n")},
			note: "Windows line ends"},
		"a second file, empty": {files: map[string]string{"main.go": starter, "x.go": ""}, err: "x.go is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCourse(t)
			e := find(t, c, "04.3")
			for file, text := range test.files {
				testkit.Must(t, write(filepath.Join(c.Dir(e), file), []byte(text)))
			}
			notes, err := c.Sound(e)
			if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("got %v, want %q", err, test.err)
			}
			if got := strings.Join(notes, " "); (got == "") != (test.note == "") || !strings.Contains(got, test.note) {
				t.Errorf("noted %q, want %q", got, test.note)
			}
		})
	}
	c := newCourse(t)
	e := Exercise{ID: "01.1", Chapter: "01-crd", File: "crd.yaml"}
	testkit.Must(t, write(filepath.Join(c.Dir(e), "my-crd.yaml"), []byte("a: b\n")))
	if _, err := c.Sound(e); err == nil || !strings.Contains(err.Error(), "rename it to crd.yaml") {
		t.Errorf("a manifest of another name: %v", err)
	}
}

// A small file system in memory stands for a full disk.
func TestAFullDiskLosesNothing(t *testing.T) {
	c := newCourse(t)
	e := find(t, c, "04.3")
	testkit.Must(t, os.MkdirAll(c.Work, 0o755))
	if err := unix.Mount("tmpfs", c.Work, "tmpfs", 0, "size=128k"); err != nil {
		t.Skipf("no file system can be mounted here: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(c.Work, unix.MNT_DETACH) })
	if _, err := c.Goto(e, Always); err != nil {
		t.Fatal(err)
	}
	mine := strings.Repeat("// mine\n", 1000)
	testkit.Must(t, os.WriteFile(filepath.Join(c.Dir(e), "main.go"), []byte(mine), 0o600))
	_ = os.WriteFile(filepath.Join(c.Work, "full"), make([]byte, 1<<20), 0o600)
	if _, err := c.Goto(e, Always); err == nil || !strings.Contains(err.Error(),
		"the disk is full; no file of yours was changed") {
		t.Errorf("got %v", err)
	}
	if is, err := os.ReadFile(filepath.Join(c.Dir(e), "main.go")); err != nil || string(is) != mine {
		t.Errorf("the reader's file was changed: %d bytes, %v", len(is), err)
	}
	testkit.Must(t, os.Remove(filepath.Join(c.Work, "full")))
	if _, err := c.Goto(e, Always); err != nil {
		t.Errorf("with space again: %v", err)
	}
}

func TestWaysOn(t *testing.T) {
	for err, want := range map[error]string{syscall.ENOSPC: "free some space", syscall.EROFS: "see who owns it"} {
		if got := ways(err); !strings.Contains(got.Error(), want) {
			t.Errorf("%v: %v", err, got)
		}
	}
}

// TestFilesThatAreRefusedUnread checks that each of these files is refused with a one-sentence message, at once, and
// without a loss.
func TestFilesThatAreRefusedUnread(t *testing.T) {
	for name, test := range map[string]struct {
		file string
		make func(path string) error
		want string
	}{
		"6 GB": {"big.go", func(path string) error {
			return errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, 6<<30))
		}, "work/04-controller-runtime/big.go has 6144.0 MiB, and a file may have 1 MiB: it was not read"},
		"a named pipe": {"pipe.go", func(path string) error { return unix.Mkfifo(path, 0o600) }, "pipe.go is a named pipe"},
		"a pipe in place of the file": {"main.go", func(path string) error {
			return errors.Join(os.Remove(path), unix.Mkfifo(path, 0o600))
		}, "main.go is a named pipe"},
		"a pipe in place of go.mod": {"go.mod", func(path string) error {
			return errors.Join(os.Remove(path), unix.Mkfifo(path, 0o600))
		}, "go.mod is a named pipe"},
		"a socket": {"socket.go", func(path string) error { return unix.Mknod(path, unix.S_IFSOCK|0o600, 0) },
			"socket.go is a socket"},
		"a device":             {"zero.go", link("/dev/zero"), "zero.go is a symbolic link"},
		"a link to itself":     {"loop.go", link("loop.go"), "loop.go is a symbolic link"},
		"a link to a folder":   {"deep", link(".."), "deep is a symbolic link"},
		"many small files":     {"many", manyFiles, "more than 2000 files"},
		"many files, together": {"large", largeFiles, "or more than 16 MiB"},
		"a folder that is a link to itself": {".", func(path string) error {
			return errors.Join(os.Rename(path, path+".real"), os.Symlink(filepath.Base(path), path))
		}, "work/04-controller-runtime cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCourse(t)
			e := find(t, c, "04.3")
			if _, err := c.Goto(e, Always); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(c.Dir(e), test.file)
			if err := test.make(path); err != nil {
				t.Skip(err)
			}
			before := c.Changed()
			for what, do := range map[string]func() error{
				"check": func() error { _, err := c.Check(t.Context(), e); return err },
				"reset": func() error { _, err := c.Goto(e, Always); return err },
				"begin": func() error {
					_, err := c.Begin(find(t, c, "04.4"), Always)
					return err
				},
			} {
				if err := do(); err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("%s: got %v, want %q", what, err, test.want)
				}
			}
			if c.Changed() != before {
				t.Error("a file was changed")
			}
		})
	}
}

func link(to string) func(path string) error {
	return func(path string) error { return os.Symlink(to, path) }
}

func manyFiles(dir string) error {
	err := os.Mkdir(dir, 0o700)
	for n := range mostFiles + 1 {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, strconv.Itoa(n)), nil, 0o600))
	}
	return err
}

func largeFiles(dir string) error {
	err := os.Mkdir(dir, 0o700)
	for n := range 20 {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, strconv.Itoa(n)), make([]byte, mostBytes), 0o600))
	}
	return err
}

// TestAStateThatIsNoFile is refused before it is read, too.
func TestAStateThatIsNoFile(t *testing.T) {
	c := newCourse(t)
	testkit.Must(t, errors.Join(os.MkdirAll(c.Work, 0o700), unix.Mkfifo(c.statePath(), 0o600)))
	if _, err := c.State(); err == nil || !strings.Contains(err.Error(), "work/.state.yaml is a named pipe") {
		t.Errorf("got %v", err)
	}
}
