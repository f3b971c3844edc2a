package impl

import (
	"errors"
	"os"
	"path/filepath"
)

// Root returns the checkout around a folder.
func Root(dir string) (string, error) {
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "scripts", "tools", "go.mod")); err == nil {
			return dir, nil
		}
	}
	return "", errors.New("the lab runs inside a checkout of the workshop")
}

// Here returns the checkout around the working directory, or else around this program.
func Here() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	root, err := Root(dir)
	if err == nil {
		return root, nil
	}
	if program, failed := os.Executable(); failed == nil {
		if own, failed := Root(filepath.Dir(program)); failed == nil {
			return own, nil
		}
	}
	return "", err
}
