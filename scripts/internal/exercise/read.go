package exercise

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// These limits apply to files that are read. The largest file of a chapter has 50 KB, and a chapter has 160 files.
const (
	mostBytes    = 1 << 20
	mostOfFolder = 16 << 20
	mostFiles    = 2000
)

// read returns the files in a folder that a reader may have written: all except the files of Go modules and hidden
// files. A file that is too large, or that has no end, is refused before it is read. Messages call the folder shown.
func read(dir, shown string) (map[string][]byte, error) {
	real, err := filepath.EvalSymlinks(dir) // WalkDir does not follow a link
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return map[string][]byte{}, nil
	case err != nil:
		return nil, fmt.Errorf("%s cannot be read, and nothing was changed: it is a link that leads nowhere, or not a "+
			"folder; remove it and try again: %w", shown, err)
	}
	files, bytes := map[string][]byte{}, 0
	err = filepath.WalkDir(real, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(real, path)
		if err != nil {
			return err
		}
		hidden := strings.HasPrefix(entry.Name(), ".") && name != "."
		switch {
		case hidden && entry.IsDir():
			return filepath.SkipDir
		case hidden, entry.IsDir():
			return nil
		}
		if files[name], err = readFile(path, filepath.Join(shown, name)); err != nil {
			return err
		}
		if bytes += len(files[name]); bytes > mostOfFolder || len(files) > mostFiles {
			return fmt.Errorf("%s has more than %d files, or more than %d MiB, and nothing was changed; move what does not "+
				"belong to the exercise out of work/", shown, mostFiles, mostOfFolder>>20)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	delete(files, "go.mod")
	delete(files, "go.sum")
	return files, nil
}

// checkFile returns an error unless a file is regular and not too large.
func checkFile(info fs.FileInfo, shown string) error {
	const then = "it was not read, and nothing was changed; move it to another place, and try again"
	kind := ""
	switch mode := info.Mode(); {
	case mode&fs.ModeNamedPipe != 0:
		kind = "a named pipe"
	case mode&fs.ModeSocket != 0:
		kind = "a socket"
	case mode&fs.ModeDevice != 0:
		kind = "a device"
	case mode.IsDir():
		kind = "a folder"
	case !mode.IsRegular():
		kind = "no regular file"
	case info.Size() > mostBytes:
		return fmt.Errorf("%s has %.1f MiB, and a file may have %d MiB: %s", shown, float64(info.Size())/(1<<20),
			mostBytes>>20, then)
	default:
		return nil
	}
	return fmt.Errorf("%s is %s, and a file is needed: %s", shown, kind, then)
}

// readFile reads a small regular file. Opening a pipe without a writer does not block it.
func readFile(path, shown string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	switch {
	case errors.Is(err, syscall.ELOOP):
		return nil, fmt.Errorf("%s is a symbolic link: it was not followed, and nothing was changed; put the file itself "+
			"there", shown)
	case errors.Is(err, syscall.ENXIO): // a socket, or a device that does not exist
		return nil, fmt.Errorf("%s is a socket or a device, and a file is needed: move it away, and try again", shown)
	case err != nil:
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil {
		err = checkFile(info, shown)
	}
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(f, mostBytes))
}
