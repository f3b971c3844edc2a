package loop

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// atEnd is a context that calls f each time a reader at the end of the file checks whether to continue.
type atEnd struct {
	context.Context
	f func()
}

func (c atEnd) Done() <-chan struct{} {
	c.f()
	return c.Context.Done()
}

// A name of a megabyte would push all other records out.
func TestLongNamesAreCut(t *testing.T) {
	path, long := filepath.Join(t.TempDir(), "ledger"), strings.Repeat("ä", 1<<19)
	f, err := Create(path, Limit)
	if err != nil {
		t.Fatal(err)
	}
	r := Record{Is: Request, N: 1, Verb: long, Group: long, Version: long, Resource: long, Subresource: long,
		Namespace: long, Name: long, UID: long, ResourceVersion: long, Kind: long, Type: long}
	f.Write(r.With(&Peer{Agent: long, User: long}))
	f.Write(Record{Is: Request, N: 2, Name: "short"})
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if about, err := os.Stat(path); err != nil || about.Size() > 5000 {
		t.Errorf("the file has %d bytes (%v)", about.Size(), err)
	}
	var names []string
	err = Read(t.Context(), path, false, func(r Record) error {
		names = append(names, r.Name)
		return nil
	})
	if err != nil || len(names) != 2 || names[0] != strings.Repeat("ä", 126) || names[1] != "short" {
		t.Errorf("%v, %q", err, names)
	}
}

// The log grows by a line in two parts, is replaced, and grows until the reader is stopped. The reader gets all lines.
func TestAFollowedLogIsReadWhenItGrowsAndWhenItIsReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	write := func(text string) {
		file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			_, err = file.WriteString(text)
			err = errors.Join(err, file.Close())
		}
		if err != nil {
			t.Error(err)
		}
	}
	write("one\ntw")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var got []string
	err := readLines(atEnd{ctx, func() {
		switch len(got) {
		case 1:
			write("o\n")
		case 2:
			write("three\n")
			if err := os.Rename(path, path+".1"); err != nil {
				t.Error(err)
			}
			write("four\n")
		case 4:
			write("five\n")
			cancel()
		}
	}}, path, true, func(line []byte) error {
		got = append(got, strings.TrimSpace(string(line)))
		return nil
	})
	if want := []string{"one", "two", "three", "four", "five"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

func TestAFileIsReplacedWhenItIsLarge(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	const limit = 2000
	f, err := Create(path, limit)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 200 {
		f.Write(Record{Is: Request, N: n + 1, Verb: "get"})
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if f, err = Create(path, limit); err != nil { // the next run
		t.Fatal(err)
	}
	f.Write(Record{Is: Request, N: 1, Verb: "get"})
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	var newest []int
	for _, path := range []string{Backup(path), path} {
		if err := Read(t.Context(), path, false, func(r Record) error {
			newest = append(newest, r.N)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(newest); n < 2 || newest[n-1] != 1 || newest[n-2] != 200 {
		t.Errorf("the records are %v", newest)
	}
}

func TestAFollowedFileThatIsRemoved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	removed := false
	err := readLines(atEnd{t.Context(), func() {
		if !removed {
			removed = true
			_ = os.Remove(path)
		}
	}}, path, true, func([]byte) error { return nil })
	if !errors.Is(err, ErrGone) {
		t.Errorf("got %v, want %v", err, ErrGone)
	}
}
