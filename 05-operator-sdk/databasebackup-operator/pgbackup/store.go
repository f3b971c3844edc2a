package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// store is the folder of one owner: a separate directory inside BACKUP_DIR, named after the owner's UID. So no owner
// can change the files of another, even if both use the same names.
type store struct {
	dir   string
	owner string
	step  func(string) // called before and after each step that leaves something behind
	log   func(message string, args ...any)
}

// backup has the files of one name in the folder.
type backup struct {
	Entry
	facts *factsFile // nil without a facts file
}

// open finds the folder; with create it makes a missing folder.
func (p *program) open(create bool) (*store, error) {
	c := p.config
	if info, err := os.Stat(c.Root); err != nil || !info.IsDir() {
		return nil, failf(ReasonVolumeMissing, "BACKUP_ROOT %q is no directory: is the volume mounted there?", c.Root)
	}
	s := &store{dir: filepath.Join(c.Dir, c.Owner), owner: c.Owner, step: p.step, log: p.log.Info}
	if create {
		if err := makeAll(c.Root, s.dir); err != nil {
			return nil, err
		}
	}
	// A symbolic link on the volume must not lead out of it.
	root, err := filepath.EvalSymlinks(c.Root)
	if err != nil {
		return nil, volumeFault("resolve BACKUP_ROOT", err)
	}
	real, err := filepath.EvalSymlinks(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return nil, volumeFault("resolve BACKUP_DIR", err)
	}
	if !inside(root, real) {
		return nil, failf(ReasonInvalidSettings,
			"BACKUP_DIR %q leads out of BACKUP_ROOT by a symbolic link: choose a directory of the volume", c.Dir)
	}
	return s, nil
}

// makeAll makes the missing directories below root, and syncs each before it makes the next.
func makeAll(root, dir string) error {
	if dir == root || dir == "/" {
		return nil
	}
	parent := filepath.Dir(dir)
	if err := makeAll(root, parent); err != nil {
		return err
	}
	err := os.Mkdir(dir, 0o770)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return volumeFault("make the directory", err)
	}
	return syncPath(parent)
}

// lock waits until no other run works in the folder; with shared, until no run changes the folder. The kernel releases
// the lock of a killed run.
func (s *store) lock(ctx context.Context, shared bool, wait time.Duration) (unlock func(), err error) {
	locked, err := poll(ctx, wait, func() (bool, error) {
		unlock, err = s.tryLock(shared)
		return unlock != nil, err
	})
	if err == nil && !locked {
		return nil, failf(ReasonBusy, "another run worked in %s for more than %s", s.dir, wait)
	}
	return unlock, err
}

// tryLock returns nil when another run has the lock.
func (s *store) tryLock(shared bool) (unlock func(), err error) {
	path, flags, how := filepath.Join(s.dir, lockName), os.O_RDWR|os.O_CREATE, syscall.LOCK_EX
	if shared { // a restore may have the volume mounted read-only
		flags, how = os.O_RDONLY, syscall.LOCK_SH
	}
	f, err := os.OpenFile(path, flags, 0o660)
	if errors.Is(err, fs.ErrNotExist) && shared {
		return func() {}, nil // a user put the files here: no run prunes them
	}
	if err != nil {
		return nil, volumeFault("open the lock", err)
	}
	err = syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
	switch {
	case err == nil && sameFile(f, path):
		return func() { _ = f.Close() }, nil
	case errors.Is(err, syscall.ENOTSUP), errors.Is(err, syscall.ENOSYS), errors.Is(err, syscall.ENOLCK):
		// Two runs may work at once: Replace starts the next pod while the old one ends, and a restore runs beside
		// backups. Without a lock, a run may remove a file that the other run reads or is about to finish. The other
		// run fails and can be tried again, and verification detects a dump with the facts of another dump. No run
		// loses a good backup: each removes a good backup only when it sees a newer good backup.
		s.log("Went on without a lock, which the volume does not offer")
		return func() { _ = f.Close() }, nil
	}
	_ = f.Close()
	if err != nil && !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
		return nil, volumeFault("lock the folder", err)
	}
	return nil, nil
}

// sameFile reports whether the open file still has its name: a run may have removed the folder with its lock.
func sameFile(f *os.File, path string) bool {
	opened, err := f.Stat()
	named, err2 := os.Stat(path)
	return err == nil && err2 == nil && os.SameFile(opened, named)
}

func (s *store) path(name, suffix string) string { return filepath.Join(s.dir, name+suffix) }

// files returns the regular files of the folder; none if the folder does not exist.
func (s *store) files() ([]fs.DirEntry, error) {
	files, err := os.ReadDir(s.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, volumeFault("read the folder", err)
	}
	return slices.DeleteFunc(files, func(f fs.DirEntry) bool { return !f.Type().IsRegular() }), nil
}

// nameOf is the name of the backup to which a finished file belongs, empty for any other file.
func nameOf(file string) string {
	for _, suffix := range []string{suffixDump, suffixGlobals, suffixFacts} {
		if name, ok := strings.CutSuffix(file, suffix); ok && nameForm.MatchString(name) {
			return name
		}
	}
	return ""
}

// entries returns the properties of all backups of the folder that retention uses. Other files are left out.
func (s *store) entries() (found []Entry, err error) {
	files, err := s.files()
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		name := nameOf(f.Name())
		if name == "" || slices.ContainsFunc(found, func(e Entry) bool { return e.Name == name }) {
			continue
		}
		if b := s.backup(name); b.State != "" {
			found = append(found, b.Entry)
		}
	}
	return found, nil
}

// backup examines the files of one name. Its State is empty if there are neither dump nor facts.
func (s *store) backup(name string) backup {
	b := backup{Entry: Entry{Name: name}, facts: s.readFacts(s.path(name, suffixFacts), name)}
	info, err := os.Lstat(s.path(name, suffixDump))
	there := err == nil && info.Mode().IsRegular()
	switch {
	case b.facts == nil && there:
		b.State, b.Time = StateUnknown, info.ModTime()
		return b
	case b.facts == nil:
		return b
	case !there:
		b.State = StateMissing
	case info.Size() != b.facts.Size:
		b.State = StateBroken
	default:
		b.State = b.facts.state()
	}
	b.Time = b.facts.Started
	return b
}
