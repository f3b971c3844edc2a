// Package lock wraps flock(2): a lock that the kernel drops when its holder dies, whatever the cause.
package lock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// ErrHeld is returned by Try when another process holds the lock.
var ErrHeld = errors.New("held by another process")

// Try takes the lock on the file at path, which is created when missing. The lock lasts until the
// returned file is closed in this process and in every child that inherited it.
func Try(path string) (*os.File, error) {
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		if err := flock(f, unix.LOCK_EX); err != nil {
			_ = f.Close() // the error of flock is the result
			return nil, err
		}
		// The last holder may have removed the file: a lock on a removed file would exclude no other process.
		if isAt(f, path) {
			return f, nil
		}
		_ = f.Close() // the removed file has no user
	}
}

// Held reports whether another process holds the lock. Processes that only ask do not exclude each other, so that they
// do not take each other for the holder.
func Held(path string) (bool, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	err = flock(f, unix.LOCK_SH)
	if errors.Is(err, ErrHeld) {
		return true, nil
	}
	return false, err
}

// Acquire waits for the lock until ctx ends. When it must wait, it calls waiting once with the process number of the
// holder, and the name of the machine or container in which the holder has that number.
func Acquire(ctx context.Context, path string, waiting func(owner string)) (release func(), err error) {
	reported := false
	for {
		f, err := Try(path)
		if err == nil {
			_ = f.Truncate(0)
			host, _ := os.Hostname()
			_, _ = fmt.Fprintf(f, "%d on %s\n", os.Getpid(), host)
			return func() { _ = f.Close() }, nil // the lock ends with the open file, also after an error
		}
		if !errors.Is(err, ErrHeld) {
			return nil, err
		}
		if !reported {
			owner, _ := os.ReadFile(path)
			waiting(strings.TrimSpace(string(owner)))
			reported = true
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func flock(f *os.File, how int) error {
	err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
	for errors.Is(err, unix.EINTR) {
		err = unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
	}
	if errors.Is(err, unix.EWOULDBLOCK) {
		return ErrHeld
	}
	if err != nil {
		return fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	return nil
}

func isAt(f *os.File, path string) bool {
	ours, err := f.Stat()
	there, statErr := os.Stat(path)
	return err == nil && statErr == nil && os.SameFile(ours, there)
}
