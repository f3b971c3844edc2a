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
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, ErrHeld
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return f, nil
}

// Acquire waits for the lock until ctx ends. When it has to wait it calls waiting once with the
// process number of the holder.
func Acquire(ctx context.Context, path string, waiting func(owner string)) (release func(), err error) {
	told := false
	for {
		f, err := Try(path)
		if err == nil {
			_ = f.Truncate(0)
			_, _ = fmt.Fprintf(f, "%d\n", os.Getpid())
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, ErrHeld) {
			return nil, err
		}
		if !told {
			owner, _ := os.ReadFile(path)
			waiting(strings.TrimSpace(string(owner)))
			told = true
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}
