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
	"strings"
	"sync"
	"time"
)

// Limit is the size at which a file of records is replaced by a new file. The replaced file is kept.
const Limit = 8 << 20

// Backup returns the path of the replaced file.
func Backup(path string) string { return path + ".1" }

// A File is written in the background: a goroutine that passes a record does not wait for the disk, or for the name of
// a process. A File without new records needs no processor time.
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

// Create begins a file of records. The file of an earlier run becomes the backup.
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

// Write adds a record, with names that are cut. The records of one file are in the order of the calls.
func (f *File) Write(r Record) {
	for _, name := range []*string{&r.Group, &r.Version, &r.Resource, &r.Subresource, &r.Namespace, &r.Name, &r.UID,
		&r.ResourceVersion, &r.Type, &r.Kind, &r.Verb} {
		*name = Cut(*name)
	}
	r.Shown.cut()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.waiting = append(f.waiting, r)
	f.changed.Signal()
}

// longest is the number of bytes of the longest name of an object.
const longest = 253

// Cut returns the beginning of a name that no object can have, which a client sent all the same.
func Cut(name string) string {
	if len(name) <= longest {
		return name
	}
	return strings.Clone(strings.ToValidUTF8(name[:longest], ""))
}

// Close writes the waiting records, and returns the errors since Create.
func (f *File) Close() error {
	f.mu.Lock()
	f.closed = true
	f.changed.Signal()
	f.mu.Unlock()
	f.written.Wait()
	return errors.Join(f.failed, f.file.Close())
}

// run writes until the file is closed. A full disk loses records, but never requests.
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
			r.By = r.peer.client()
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

// ErrGone is returned when a followed file was removed, and no other file took its place.
var ErrGone = errors.New("the ledger was removed")

// goneAfter is how long a file may be missing while another file takes its place.
const goneAfter = 2 * time.Second

// Read calls f for each record of a file, in the order of its lines. With follow it waits for more records until ctx
// ends, also in the file that takes the place of this file.
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
	var next *os.File // the file that has replaced this one, which is read to its end first
	there := time.Now()
	for {
		part, err := lines.ReadBytes('\n')
		begun = append(begun, part...) // a line may still be incomplete
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
			follow = false // read the records that were written meanwhile
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

// replaced opens the file at path when it differs from the open file, else it returns nil.
func replaced(open *os.File, path string) (*os.File, error) {
	was, err := open.Stat()
	is, missing := os.Stat(path)
	if err != nil || missing != nil || os.SameFile(was, is) {
		return nil, err // the file is the same, or is just being replaced
	}
	return os.Open(path)
}
