package exercise

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/mod/modfile"
)

// A Workspace is the reader's part of a checkout: the folder work/, which is not committed.
type Workspace struct {
	// Root is the checkout, Work the folder; messages call it work/.
	Root, Work string
	// Now is the clock: it names saved copies, and the time of a pass.
	Now func() time.Time
}

// Dir returns the folder of the reader's files of an exercise.
func (w Workspace) Dir(e Exercise) string { return filepath.Join(w.Work, e.folder()) }

func (e Exercise) folder() string { return cmp.Or(e.Folder, e.Chapter) }

// Path returns the file that a reader edits, relative to the checkout.
func (e Exercise) Path() string { return filepath.Join("work", e.folder(), e.File) }

// Files returns the files of a starter or a solution, by their paths in the work folder.
func (w Workspace) Files(e Exercise, of string) (map[string][]byte, error) {
	from := filepath.Join(w.Root, e.Chapter, of)
	info, err := os.Stat(from)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		data, err := os.ReadFile(from)
		return map[string][]byte{e.File: data}, err
	}
	return read(from, filepath.Join(e.Chapter, of))
}

// Written returns the reader's files.
func (w Workspace) Written(e Exercise) (map[string][]byte, error) {
	return read(w.Dir(e), filepath.Join("work", e.folder()))
}

// Put replaces the reader's files. It first saves the present files that differ. saved is the folder of the saved
// files, relative to the checkout; empty when there was nothing to save.
func (w Workspace) Put(e Exercise, files map[string][]byte) (saved string, err error) {
	old, err := w.Written(e)
	if err != nil {
		return "", err
	}
	for name, data := range old {
		if !bytes.Equal(data, files[name]) {
			if saved, err = w.save(e, old); err != nil {
				return "", err
			}
			break
		}
	}
	for name, data := range files {
		if err := write(filepath.Join(w.Dir(e), name), data); err != nil {
			return saved, err
		}
	}
	for name := range old { // the last step: a reader who interrupts it has old and new files
		if _, stays := files[name]; !stays {
			if err := os.Remove(filepath.Join(w.Dir(e), name)); err != nil {
				return saved, err
			}
		}
	}
	return saved, nil
}

// save copies files into a new folder below work/.saved.
func (w Workspace) save(e Exercise, files map[string][]byte) (string, error) {
	moment := w.Now().Format("2006-01-02T15-04-05")
	name := filepath.Join(".saved", moment, e.folder())
	for n := 2; ; n++ {
		if _, err := os.Stat(filepath.Join(w.Work, name)); errors.Is(err, fs.ErrNotExist) {
			break
		}
		name = filepath.Join(".saved", fmt.Sprintf("%s-%d", moment, n), e.folder())
	}
	for file, data := range files {
		if err := write(filepath.Join(w.Work, name, file), data); err != nil {
			return "", err
		}
	}
	if err := w.label(name, e); err != nil {
		return "", err
	}
	return filepath.Join("work", name), nil
}

// Module makes the work folder a Go module that may import the chapter's packages, including internal packages: its
// path is below the chapter's, and a replace directive leads to the chapter's folder. A program that go run starts there
// has the name my-operator. A chapter without a module needs none.
func (w Workspace) Module(e Exercise) error {
	chapter := filepath.Join(w.Root, e.Chapter)
	data, err := os.ReadFile(filepath.Join(chapter, "go.mod"))
	if err != nil {
		return err
	}
	mod, err := modfile.Parse("go.mod", data, nil)
	if err != nil {
		return err
	}
	path := mod.Module.Mod.Path
	up, err := filepath.Rel(w.Dir(e), chapter)
	if err == nil {
		err = errors.Join(mod.AddModuleStmt(path+"/my-operator"), mod.AddRequire(path, "v0.0.0"),
			mod.AddReplace(path, "", filepath.ToSlash(up), ""))
	}
	if err != nil {
		return err
	}
	mod.Cleanup()
	if data, err = mod.Format(); err != nil {
		return err
	}
	sums, err := os.ReadFile(filepath.Join(chapter, "go.sum"))
	if err != nil {
		return err
	}
	return errors.Join(write(filepath.Join(w.Dir(e), "go.mod"), data), write(filepath.Join(w.Dir(e), "go.sum"), sums))
}

// write replaces a file in one step: the file is unchanged, or has all of the data.
func write(path string, data []byte) (err error) {
	if is, err := readFile(path, path); err == nil && bytes.Equal(is, data) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return ways(err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return ways(err)
	}
	defer os.Remove(f.Name())
	_, err = f.Write(data)
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err != nil {
		return ways(err)
	}
	return ways(os.Rename(f.Name(), path))
}

// ways says what to do about a file system that accepts no more data.
func ways(err error) error {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("the disk is full; no file of yours was changed or lost: free some space and try again: %w", err)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return fmt.Errorf("work/ cannot be written; no file of yours was changed or lost: "+
			"see who owns it (ls -ld work) and try again: %w", err)
	}
	return err
}

// Sound returns mistakes in the reader's files that a compiler would not explain well, each with a fix, and notes about
// harmless oddities.
func (w Workspace) Sound(e Exercise) (notes []string, err error) {
	files, err := w.Written(e)
	if err != nil {
		return nil, ways(err)
	}
	reset := fmt.Sprintf("`make reset EX=%s` brings the starter (your files are saved first)", e.ID)
	if IsBug(e.ID) {
		reset = "`make reset` plants the bug again (your files are saved first)"
	}
	if _, there := files[e.File]; !there {
		similar := slices.DeleteFunc(slices.Sorted(maps.Keys(files)),
			func(name string) bool { return filepath.Ext(name) != filepath.Ext(e.File) })
		switch {
		case len(similar) == 0:
			if saved, err := w.Saved(); err == nil && len(saved) > 0 {
				reset += ", `make restore` lists older copies"
			}
			return nil, fmt.Errorf("%s is not there; %s", e.Path(), reset)
		case filepath.Ext(e.File) != ".go": // Go compiles the files that exist, whatever their names
			return nil, fmt.Errorf("%s is not there, but %s is: rename it to %s", e.Path(), similar[0], e.File)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path, data := filepath.Join("work", e.folder(), name), files[name]
		switch {
		case len(bytes.TrimSpace(data)) == 0:
			return nil, fmt.Errorf("%s is empty, or only half saved: save it in your editor; or %s", path, reset)
		case bytes.IndexByte(data, 0) >= 0:
			return nil, fmt.Errorf("%s holds a zero byte, it is damaged or not text: save it again as UTF-8; or %s", path, reset)
		case bytes.Contains(data, []byte("\r\n")):
			notes = append(notes, "note: "+path+" has Windows line ends (CRLF). They do no harm here.")
		}
		for n, line := range bytes.Split(data, []byte("\n")) {
			for _, mark := range []string{"<<<<<<< ", ">>>>>>> "} {
				if bytes.HasPrefix(line, []byte(mark)) {
					return nil, fmt.Errorf("%s:%d: a merge left its marks here: keep one of the two versions, "+
						"and delete the lines with <<<<<<<, ======= and >>>>>>>", path, n+1)
				}
			}
		}
	}
	return notes, nil
}

// source returns the text of the reader's files, with Unix line ends and without comments that fill a line.
func source(files map[string][]byte) string {
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(files)) {
		for line := range strings.Lines(strings.ReplaceAll(string(files[name]), "\r\n", "\n")) {
			if trimmed := strings.TrimSpace(line); !strings.HasPrefix(trimmed, "//") && !strings.HasPrefix(trimmed, "#") {
				text.WriteString(line)
			}
		}
	}
	return text.String()
}
