package exercise

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"unicode/utf8"
)

// A Text is the file of an exercise, as it is on the disk.
type Text struct {
	Text string `json:"text"`
	// Version differs for each text. It is empty when there is no file.
	Version string `json:"version"`
}

// ErrChanged is returned instead of a write when the file is not the one that the writer has read.
var ErrChanged = errors.New("the file has changed on the disk")

// A textFile is the file of an exercise. Its root is work/, which no symbolic link and no path leaves.
type textFile struct {
	root        *os.Root
	name, shown string
	mode        fs.FileMode
}

func (w Workspace) openText(e Exercise) (*textFile, error) {
	root, err := os.OpenRoot(w.Work)
	return &textFile{root: root, name: filepath.Join(e.folder(), e.File), shown: e.Path(), mode: 0o644}, ways(err)
}

// ReadText returns the file that a reader edits. Without a file, the text has no version.
func (w Workspace) ReadText(e Exercise) (Text, error) {
	f, err := w.openText(e)
	if err != nil {
		return Text{}, err
	}
	defer f.root.Close()
	return f.read()
}

func (f *textFile) read() (Text, error) {
	info, err := f.root.Lstat(f.name)
	if errors.Is(err, fs.ErrNotExist) {
		return Text{}, nil
	}
	if err == nil && info.Mode()&fs.ModeSymlink != 0 {
		err = fmt.Errorf("%s is a symbolic link, and a file is needed", f.shown)
	}
	if err == nil {
		err = checkFile(info, f.shown)
	}
	if err != nil {
		return Text{}, err
	}
	data, err := f.root.ReadFile(f.name)
	if err == nil && !utf8.Valid(data) {
		err = fmt.Errorf("%s is not text in UTF-8", f.shown)
	}
	if err != nil {
		return Text{}, ways(err)
	}
	f.mode = info.Mode().Perm()
	return Text{Text: string(data), Version: fmt.Sprintf("%x", sha256.Sum256(data))}, nil
}

// WriteText replaces the file that a reader edits in one step, when its version is still the given one. Otherwise it
// returns the present text, and ErrChanged.
func (w Workspace) WriteText(e Exercise, text, version string) (Text, error) {
	f, err := w.openText(e)
	if err != nil {
		return Text{}, err
	}
	defer f.root.Close()
	is, err := f.read()
	switch {
	case err != nil:
		return Text{}, err
	case is.Version != version:
		return is, ErrChanged
	case len(text) > mostBytes:
		return Text{}, fmt.Errorf("%s may have %d MiB", f.shown, mostBytes>>20)
	}
	if err := f.replace(text); err != nil {
		return Text{}, ways(err)
	}
	return f.read()
}

func (f *textFile) replace(text string) error {
	dir := filepath.Dir(f.name)
	if err := f.root.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	name := filepath.Join(dir, ".new-"+rand.Text())
	made, err := f.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, f.mode)
	if err != nil {
		return err
	}
	_, err = made.WriteString(text)
	if err = errors.Join(err, made.Close()); err == nil {
		err = f.root.Rename(name, f.name)
	}
	if err != nil {
		err = errors.Join(err, f.root.Remove(name))
	}
	return err
}
