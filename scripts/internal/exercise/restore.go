package exercise

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// labelFile is in a saved copy, beside the files. It names the exercise of the files.
const labelFile = ".exercise"

// label writes the exercise of a saved copy; name is the folder of the copy, relative to work/.
func (w Workspace) label(name string, e Exercise) error {
	s, err := w.State()
	if err != nil {
		return err
	}
	return write(filepath.Join(w.Work, name, labelFile), []byte(s.Begun[e.folder()]+"\n"))
}

// A Copy has files that were saved before other files replaced them.
type Copy struct {
	// Path is the folder of the copy, relative to the checkout; Time is when the copy was saved.
	Path, Time string
	// Folder is the former folder of the files in work/, Exercise the exercise of the files; empty when it is unknown.
	Folder, Exercise string
	written          time.Time
}

// Saved returns the copies in work/.saved, the newest first.
func (w Workspace) Saved() (all []Copy, err error) {
	top := filepath.Join(w.Work, ".saved")
	err = filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Name() != labelFile {
			return err
		}
		name, err := filepath.Rel(top, filepath.Dir(path))
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		label, err := readFile(path, filepath.Join("work", ".saved", name, labelFile))
		if err != nil {
			return err
		}
		moment, folder, _ := strings.Cut(filepath.ToSlash(name), "/")
		all = append(all, Copy{Path: filepath.Join("work", ".saved", name), Time: moment, Folder: folder,
			Exercise: strings.TrimSpace(string(label)), written: info.ModTime()})
		return nil
	})
	if os.IsNotExist(err) {
		return nil, nil
	}
	slices.SortFunc(all, func(a, b Copy) int { return b.written.Compare(a.written) })
	return all, err
}

// Restore puts the files of a copy back into work/, and makes its exercise the current exercise. It saves the files
// that it replaces.
func (c Course) Restore(from Copy) (saved string, err error) {
	e := Exercise{ID: from.Exercise, Folder: filepath.FromSlash(from.Folder)}
	files, err := read(filepath.Join(c.Work, ".saved", from.Time, e.Folder), from.Path)
	if err != nil {
		return "", err
	}
	if len(files) == 0 {
		return "", fmt.Errorf("%s has no files: nothing was changed", from.Path)
	}
	if saved, err = c.Put(e, files); err != nil || e.ID == "" {
		return saved, err
	}
	return saved, c.GoOn(e)
}
