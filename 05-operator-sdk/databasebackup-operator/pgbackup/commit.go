package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"time"
)

// Suffixes of the files of one backup, and of unfinished files.
const (
	suffixDump    = ".dump"
	suffixGlobals = ".globals.sql"
	suffixFacts   = ".json"
	suffixTemp    = ".tmp"
	lockName      = ".lock"
)

// temporaryAge is the age from which a temporary file certainly belongs to a run that was killed.
const temporaryAge = 24 * time.Hour

// temporary is the path of a file of an unfinished run.
func (s *store) temporary(name, suffix, run string) string {
	return s.path(name, suffix+"."+run+suffixTemp)
}

// newRun returns a mark for the temporary files of one run: a tool of an earlier run may still be writing.
func newRun() string {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

var temporaryForm = regexp.MustCompile(`^(.+)(\.dump|\.globals\.sql|\.json)\.([0-9a-f]{8})\.tmp$`)

// unfinished is a temporary file.
type unfinished struct {
	file, name, suffix, run string
	changed                 time.Time
}

func (s *store) unfinished() ([]unfinished, error) {
	files, err := s.files()
	if err != nil {
		return nil, err
	}
	var found []unfinished
	for _, f := range files {
		parts := temporaryForm.FindStringSubmatch(f.Name())
		info, err := f.Info()
		if parts == nil || err != nil {
			continue
		}
		found = append(found, unfinished{
			file: f.Name(), name: parts[1], suffix: parts[2], run: parts[3], changed: info.ModTime()})
	}
	return found, nil
}

// commit gives the files of a run their final names, the facts last.
func (s *store) commit(name, run string) error {
	for _, suffix := range []string{suffixDump, suffixGlobals, suffixFacts} {
		s.step("rename " + suffix)
		err := os.Rename(s.temporary(name, suffix, run), s.path(name, suffix))
		if err != nil && (suffix == suffixFacts || !errors.Is(err, fs.ErrNotExist)) {
			return volumeFault("rename the file", err)
		}
	}
	s.step("renamed")
	return syncPath(s.dir)
}

// recover finishes the backups that killed runs had prepared, and removes other temporary files: files of this name at
// once, files of other names after a day. The caller holds the lock, so no other run works here.
func (s *store) recover(ctx context.Context, name string, now time.Time) error {
	left, err := s.unfinished()
	if err != nil {
		return err
	}
	for _, u := range left {
		if u.suffix != suffixFacts {
			continue
		}
		if err := s.finish(ctx, u); err != nil {
			return err
		}
	}
	if left, err = s.unfinished(); err != nil {
		return err
	}
	for _, u := range left {
		if u.name != name && now.Sub(u.changed) < temporaryAge {
			continue
		}
		if err := os.Remove(filepath.Join(s.dir, u.file)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return volumeFault("remove a file of a run that was killed", err)
		}
		s.log("Removed a file of a run that was killed", "file", u.file)
	}
	return nil
}

// finish commits a run if all files of its facts exist, under their temporary or their final names.
func (s *store) finish(ctx context.Context, u unfinished) error {
	facts := s.readFacts(filepath.Join(s.dir, u.file), u.name)
	if facts == nil {
		return nil
	}
	for suffix, want := range map[string]checksum{suffixDump: facts.dump(), suffixGlobals: facts.Globals} {
		path := s.temporary(u.name, suffix, u.run)
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			path = s.path(u.name, suffix)
		}
		have, err := sum(ctx, path)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil || have != want {
			s.log("Left a run that was killed unfinished: its files are not those that it recorded", "backup", u.name)
			return nil
		}
	}
	s.log("Finished a run that was killed", "backup", u.name)
	return s.commit(u.name, u.run)
}

// removeRun removes the temporary files of one run.
func (s *store) removeRun(name, run string) {
	for _, suffix := range []string{suffixDump, suffixGlobals, suffixFacts} {
		_ = os.Remove(s.temporary(name, suffix, run))
	}
}

// remove removes the files of one backup, the facts last: while the facts exist, the next run detects an interrupted
// removal, and finishes it.
func (s *store) remove(name string) error {
	for _, suffix := range []string{suffixDump, suffixGlobals, suffixFacts} {
		s.step("remove " + suffix)
		if err := os.Remove(s.path(name, suffix)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return volumeFault("remove a file", err)
		}
		if suffix == suffixDump {
			if err := syncPath(s.dir); err != nil {
				return err
			}
		}
	}
	s.step("removed")
	return syncPath(s.dir)
}
