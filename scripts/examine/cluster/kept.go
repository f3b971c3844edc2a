package cluster

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"example.com/operator-workshop/scripts/examine/lock"
)

// ErrBusy is returned when another run uses the cluster that the lab keeps.
var ErrBusy = errors.New("another run has the kept cluster")

// Kept is the folder of a second cluster, which the lab keeps between its runs.
func (c *Cluster) Kept() string { return filepath.Join(c.state, "lab") }

// TryKept locks a kept cluster for one run. It does not wait for another run that has the lock.
func TryKept(dir string) (run *os.File, err error) {
	run, err = lock.Try(filepath.Join(dir, "run"))
	if errors.Is(err, lock.ErrHeld) {
		err = ErrBusy
	}
	return run, err
}

// DownKept ends the cluster that is kept in a folder, and removes the folder.
func DownKept(ctx context.Context, bin, dir string) error {
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	run, err := TryKept(dir)
	if err != nil {
		return err
	}
	defer run.Close()
	if err := New(bin, dir, func(string, ...any) {}).Down(ctx); err != nil {
		return err
	}
	return os.RemoveAll(dir)
}
