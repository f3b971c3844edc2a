package main

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// retain removes the backups that the policy does not keep, the oldest first.
func (p *program) retain(ctx context.Context, s *store) error {
	entries, err := s.entries()
	if err != nil {
		return err
	}
	_, remove := Keep(entries, p.config.Policy, p.now(), p.config.Location)
	// After the clock was ahead for a while, earlier backups seem newer than the backup that this run has just taken.
	taken := func(e Entry) bool {
		return e.Name == p.config.Name && e.State != StateBroken && e.State != StateMissing
	}
	if i := slices.IndexFunc(remove, taken); i >= 0 {
		remove = slices.Delete(remove, i, i+1)
	}
	for _, e := range slices.Backward(remove) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.remove(e.Name); err != nil {
			return err
		}
		p.result.Removed = append(p.result.Removed, e.Name)
		p.log.Info("Removed backup", "backup", e.Name, "state", e.State)
	}
	return nil
}

// list adds the backups on the volume to the result, also after a failure.
func (p *program) list(s *store) {
	entries, err := s.entries()
	if err != nil {
		p.log.Warn("Failed to list the backups", "error", p.line(err))
		return
	}
	p.result.Backups = append([]Entry{}, newestFirst(entries)...) // a list without backups is not nil
}

// delete removes all files of the owner that have names of this program's form. Other files stay, and so does their
// folder.
func (p *program) delete(ctx context.Context) error {
	s, err := p.open(false)
	if err != nil {
		return err
	}
	if _, err := os.Stat(s.dir); errors.Is(err, fs.ErrNotExist) {
		p.succeed(ReasonDeleteSucceeded, "nothing was there")
		return nil
	}
	unlock, err := s.lock(ctx, false, p.config.Wait)
	if err != nil {
		return err
	}
	defer unlock()
	files, err := s.files()
	if err != nil {
		return err
	}
	removed := map[string]bool{}
	for _, f := range files { // .dump sorts before .globals.sql and .json, as in remove
		name := nameOf(f.Name())
		if name == "" && !temporaryForm.MatchString(f.Name()) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		p.step("delete " + f.Name())
		if err := os.Remove(filepath.Join(s.dir, f.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return volumeFault("remove a file", err)
		}
		if name != "" {
			removed[name] = true
		}
	}
	p.result.Removed = sortedKeys(removed)
	p.step("deleted")
	left, err := p.removeFolder(s)
	if err != nil {
		return err
	}
	p.succeed(ReasonDeleteSucceeded, "removed %d backups; %d other files were left", len(removed), left)
	return nil
}

// removeFolder removes the folder of the owner with its lock, unless other files are left in it. It returns their
// number.
func (p *program) removeFolder(s *store) (left int, err error) {
	files, err := os.ReadDir(s.dir)
	if err != nil {
		return 0, volumeFault("read the folder", err)
	}
	for _, f := range files {
		if f.Name() != lockName {
			left++
		}
	}
	if left > 0 {
		return left, syncPath(s.dir)
	}
	err = errors.Join(os.Remove(filepath.Join(s.dir, lockName)), os.Remove(s.dir))
	if err != nil {
		return 0, volumeFault("remove the folder", err)
	}
	return 0, syncPath(p.config.Dir)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
