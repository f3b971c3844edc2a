package loop

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// Limit is how large a file of records becomes before another one takes its place. One that was replaced is kept.
const Limit = 8 << 20

// Backup is where the file that was replaced is.
func Backup(path string) string { return path + ".1" }

// A File is written in the background: who hands a record over does not wait for the disk, or for the name of a
// process. When there are no records, it costs nothing.
type File struct {
	path  string
	limit int

	file *os.File
	size int

	mu      sync.Mutex
	changed sync.Cond
	waiting []Record
	closed  bool
	failed  error
	written sync.WaitGroup
}

// Create begins a file of records. What an earlier run left there becomes the backup.
func Create(path string, limit int) (*File, error) {
	f := &File{path: path, limit: limit}
	f.changed.L = &f.mu
	if err := f.replace(); err != nil {
		return nil, err
	}
	f.written.Go(f.run)
	return f, nil
}

// replace makes the file the backup and begins an empty one.
func (f *File) replace() (err error) {
	if f.file != nil {
		err = f.file.Close()
	}
	if renamed := os.Rename(f.path, Backup(f.path)); !errors.Is(renamed, os.ErrNotExist) {
		err = errors.Join(err, renamed)
	}
	if err != nil {
		return err
	}
	f.size = 0
	f.file, err = os.OpenFile(f.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	return err
}

// Write adds a record. The records of one file come in the order of the calls.
func (f *File) Write(r Record) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.waiting = append(f.waiting, r)
	f.changed.Signal()
}

// Close writes what waits, and returns what went wrong since Create.
func (f *File) Close() error {
	f.mu.Lock()
	f.closed = true
	f.changed.Signal()
	f.mu.Unlock()
	f.written.Wait()
	return errors.Join(f.failed, f.file.Close())
}

// run writes until the file is closed. A disk that is full loses records, never requests.
func (f *File) run() {
	for {
		f.mu.Lock()
		for len(f.waiting) == 0 && !f.closed {
			f.changed.Wait()
		}
		some := f.waiting
		f.waiting = nil
		f.mu.Unlock()
		if len(some) == 0 {
			return
		}
		f.failed = f.append(some)
	}
}

func (f *File) append(some []Record) error {
	var lines bytes.Buffer
	for _, r := range some {
		if r.peer != nil {
			r.By = r.peer.program()
		}
		if err := json.NewEncoder(&lines).Encode(r); err != nil {
			return err
		}
	}
	if f.size > 0 && f.size+lines.Len() > f.limit {
		if err := f.replace(); err != nil {
			return err
		}
	}
	n, err := f.file.Write(lines.Bytes())
	f.size += n
	return err
}

// poll is how often a followed file is read: a file does not report that it grew.
const poll = 50 * time.Millisecond

// ErrGone is returned when a followed file was removed, and no other took its place.
var ErrGone = errors.New("the ledger was removed")

// goneAfter is how long a file may be missing while another one takes its place.
const goneAfter = 2 * time.Second

// Read calls f for each record of a file, in the order of its lines. With follow it waits for more until ctx ends, also
// in the file that takes the place of this one.
func Read(ctx context.Context, path string, follow bool, f func(Record) error) error {
	return readLines(ctx, path, follow, func(line []byte) error {
		var r Record
		if err := json.Unmarshal(line, &r); err != nil {
			return fmt.Errorf("read %s: %w in %s", path, err, line)
		}
		return f(r)
	})
}

func readLines(ctx context.Context, path string, follow bool, f func(line []byte) error) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	lines, begun := bufio.NewReader(file), []byte(nil)
	var next *os.File // what has replaced this file, which is read to its end first
	there := time.Now()
	for {
		part, err := lines.ReadBytes('\n')
		begun = append(begun, part...) // a line may be written only in part yet
		switch {
		case err == nil:
			if err := f(begun); err != nil {
				return err
			}
			begun = nil
			continue
		case !errors.Is(err, io.EOF):
			return err
		case next != nil:
			_ = file.Close()
			file, lines, begun, next = next, bufio.NewReader(next), nil, nil
			continue
		case !follow:
			return nil
		}
		select {
		case <-ctx.Done():
			follow = false // what was written meanwhile is read
		case <-time.After(poll):
		}
		if _, err := os.Stat(path); err == nil {
			there = time.Now()
		} else if time.Since(there) > goneAfter {
			return ErrGone
		}
		if next, err = replaced(file, path); err != nil {
			return err
		}
	}
}

// replaced opens the file at path when it is another one than the open file, else it returns nil.
func replaced(open *os.File, path string) (*os.File, error) {
	was, err := open.Stat()
	is, missing := os.Stat(path)
	if err != nil || missing != nil || os.SameFile(was, is) {
		return nil, err // the file is still the same, or is being replaced just now
	}
	return os.Open(path)
}
