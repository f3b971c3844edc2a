package pgbackup

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Suffixes of the files of one backup, and of those that are not finished.
const (
	suffixDump    = ".dump"
	suffixGlobals = ".globals.sql"
	suffixSidecar = ".json"
	suffixTemp    = ".tmp"
	lockName      = ".lock"
)

// temporaryAge is when a temporary file is surely of a run that was killed.
const temporaryAge = 24 * time.Hour

// sidecar is what is recorded beside a dump. It is written last: with it a backup is complete.
type sidecar struct {
	Format    int       `json:"format"` // 1
	Name      string    `json:"name"`
	Owner     string    `json:"owner"`
	Database  string    `json:"database"`
	Path      string    `json:"path"`
	Size      int64     `json:"size"`
	SHA256    string    `json:"sha256"`
	Globals   checksum  `json:"globals"`
	Started   time.Time `json:"started"`
	Completed time.Time `json:"completed"`

	ServerVersion string `json:"serverVersion"`
	PgDumpVersion string `json:"pgDumpVersion"`
	Encoding      string `json:"encoding"`
	Collate       string `json:"collate"`
	CType         string `json:"ctype"`
	Provider      string `json:"localeProvider,omitempty"` // c, i or b, as in pg_database
	Locale        string `json:"locale,omitempty"`         // of the provider
	// Tables are the rows of each table, by its name quoted as in SQL, in the snapshot that was dumped.
	Tables       map[string]int64 `json:"tables"`
	LargeObjects int64            `json:"largeObjects"`
	// Roles are those that objects of the database belong or are granted to.
	Roles []string `json:"roles"`

	Verified *Verified `json:"verified,omitempty"`
	Failure  *Failure  `json:"failure,omitempty"`
}

// checksum tells two files apart.
type checksum struct {
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

func (s *sidecar) dump() checksum { return checksum{Size: s.Size, SHA256: s.SHA256} }

func (s *sidecar) facts() *Facts {
	f := &Facts{Name: s.Name, Database: s.Database, Path: s.Path, Size: s.Size, SHA256: s.SHA256,
		Started: s.Started, Completed: s.Completed, ServerVersion: s.ServerVersion, PgDumpVersion: s.PgDumpVersion,
		Tables: len(s.Tables), Verified: s.Verified, Failure: s.Failure}
	for rows := range maps.Values(s.Tables) {
		f.Rows += rows
	}
	return f
}

// store is the folder of one owner: a directory of its own inside BACKUP_DIR, named by its UID. So no owner
// can touch the files of another, whatever their names are.
type store struct {
	dir   string
	owner string
	step  func(string) // told before and after each step that leaves something behind
	log   func(message string, args ...any)
}

// backup is what the folder holds of one name.
type backup struct {
	Entry
	facts *sidecar // nil when there is none
}

// open finds the folder; with create it is made.
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
		return nil, failf(ReasonInvalidSettings, "BACKUP_DIR %q leads out of BACKUP_ROOT by a symbolic link: choose a directory of the volume", c.Dir)
	}
	return s, nil
}

// makeAll makes the missing directories below root, each durable before the next.
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

// lock waits until no other run works in the folder; shared, until none changes it. The kernel frees the
// lock of a run that was killed.
func (s *store) lock(ctx context.Context, shared bool, wait time.Duration) (unlock func(), err error) {
	path, deadline := filepath.Join(s.dir, lockName), time.Now().Add(wait)
	flags, how := os.O_RDWR|os.O_CREATE, syscall.LOCK_EX
	if shared { // a restore may have the volume mounted read-only
		flags, how = os.O_RDONLY, syscall.LOCK_SH
	}
	for {
		f, err := os.OpenFile(path, flags, 0o660)
		if errors.Is(err, fs.ErrNotExist) && shared {
			return func() {}, nil // files that were brought here by hand: nobody prunes them
		}
		if err != nil {
			return nil, volumeFault("open the lock", err)
		}
		err = syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
		switch {
		case err == nil && sameFile(f, path):
			return func() { _ = f.Close() }, nil
		case errors.Is(err, syscall.ENOTSUP), errors.Is(err, syscall.ENOSYS), errors.Is(err, syscall.ENOLCK):
			// Two runs at once there are: Replace starts the next pod while the old one ends, and a restore runs beside
			// backups. Without a lock one may take a file away that the other reads or is about to finish: that one fails,
			// and may be tried again; a dump that got the facts of another is caught by the verification. A good backup is
			// lost to neither: each removes one only where it sees a newer good one.
			s.log("Went on without a lock, which the volume does not offer")
			return func() { _ = f.Close() }, nil
		}
		_ = f.Close()
		if err != nil && !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return nil, volumeFault("lock the folder", err)
		}
		if time.Now().After(deadline) {
			return nil, failf(ReasonBusy, "another run worked in %s for more than %s", s.dir, wait)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// sameFile reports whether the open file still has its name: a run that removed the folder took the lock along.
func sameFile(f *os.File, path string) bool {
	opened, err := f.Stat()
	named, err2 := os.Stat(path)
	return err == nil && err2 == nil && os.SameFile(opened, named)
}

func (s *store) path(name, suffix string) string { return filepath.Join(s.dir, name+suffix) }

// temporary is the path of a file of a run that is not finished.
func (s *store) temporary(name, suffix, run string) string {
	return s.path(name, suffix+"."+run+suffixTemp)
}

// newRun marks the temporary files of one run: a tool of an earlier one may still be writing.
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
		found = append(found, unfinished{file: f.Name(), name: parts[1], suffix: parts[2], run: parts[3], changed: info.ModTime()})
	}
	return found, nil
}

// files are the regular files of the folder; none when it is not there.
func (s *store) files() ([]fs.DirEntry, error) {
	files, err := os.ReadDir(s.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, volumeFault("read the folder", err)
	}
	return slices.DeleteFunc(files, func(f fs.DirEntry) bool { return !f.Type().IsRegular() }), nil
}

// nameOf is the name of the backup that a finished file belongs to; empty when it is none of ours.
func nameOf(file string) string {
	for _, suffix := range []string{suffixDump, suffixGlobals, suffixSidecar} {
		if name, ok := strings.CutSuffix(file, suffix); ok && nameForm.MatchString(name) {
			return name
		}
	}
	return ""
}

// backups are all that the folder holds. Files that are none of ours are left out.
func (s *store) backups() ([]backup, error) {
	files, err := s.files()
	if err != nil {
		return nil, err
	}
	var found []backup
	for _, f := range files {
		name := nameOf(f.Name())
		if name == "" || slices.ContainsFunc(found, func(b backup) bool { return b.Name == name }) {
			continue
		}
		if b := s.backup(name); b.State != "" {
			found = append(found, b)
		}
	}
	return found, nil
}

// backup looks at the files of one name. Its State is empty when there are neither dump nor facts.
func (s *store) backup(name string) backup {
	b := backup{Entry: Entry{Name: name}, facts: s.readSidecar(s.path(name, suffixSidecar), name)}
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
	case b.facts.Failure != nil || info.Size() != b.facts.Size:
		b.State = StateBroken
	case b.facts.Verified == nil || !b.facts.Verified.Mode.covers(ModeArchive):
		b.State = StateUnverified
	default:
		b.State = StateGood
	}
	b.Time = b.facts.Started
	return b
}

// readSidecar is nil when the file is not there, or not a sidecar of this name and owner.
func (s *store) readSidecar(path, name string) *sidecar {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	var found sidecar
	if json.Unmarshal(text, &found) != nil || found.Format != 1 || found.Name != name || found.Owner != s.owner {
		return nil
	}
	return &found
}

// prepareSidecar writes the facts under a temporary name, durably. From then on commit can finish the run,
// whoever calls it.
func (s *store) prepareSidecar(facts *sidecar, run string) error {
	text, err := json.MarshalIndent(facts, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the facts: %w", err)
	}
	f, err := os.OpenFile(s.temporary(facts.Name, suffixSidecar, run), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o660)
	if err != nil {
		return volumeFault("write the facts", err)
	}
	_, err = f.Write(append(text, '\n'))
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return volumeFault("write the facts", err)
	}
	return syncPath(s.dir)
}

// commit gives the files of a run their final names, the facts last.
func (s *store) commit(name, run string) error {
	for _, suffix := range []string{suffixDump, suffixGlobals, suffixSidecar} {
		s.step("rename " + suffix)
		err := os.Rename(s.temporary(name, suffix, run), s.path(name, suffix))
		if err != nil && (suffix == suffixSidecar || !errors.Is(err, fs.ErrNotExist)) {
			return volumeFault("rename the file", err)
		}
	}
	s.step("renamed")
	return syncPath(s.dir)
}

// record replaces the facts of a backup that is there.
func (s *store) record(facts *sidecar) error {
	run := newRun()
	err := s.prepareSidecar(facts, run)
	if err == nil {
		err = s.commit(facts.Name, run)
	}
	if err != nil {
		_ = os.Remove(s.temporary(facts.Name, suffixSidecar, run))
	}
	return err
}

// recover finishes what killed runs had prepared, and removes what they had not: of this name at once, of
// others when it is a day old. The lock is held, so nobody is at work here.
func (s *store) recover(ctx context.Context, name string, now time.Time) error {
	left, err := s.unfinished()
	if err != nil {
		return err
	}
	for _, u := range left {
		if u.suffix != suffixSidecar {
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

// finish commits a run when all that its facts tell of is there, under the temporary or the final name.
func (s *store) finish(ctx context.Context, u unfinished) error {
	facts := s.readSidecar(filepath.Join(s.dir, u.file), u.name)
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
	for _, suffix := range []string{suffixDump, suffixGlobals, suffixSidecar} {
		_ = os.Remove(s.temporary(name, suffix, run))
	}
}

// remove removes the files of one backup, the facts last: while they are there, a removal that was cut off
// is known and can be finished.
func (s *store) remove(name string) error {
	for _, suffix := range []string{suffixDump, suffixGlobals, suffixSidecar} {
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

// sum reads a file and tells its size and SHA-256. It ends early with ctx.
func sum(ctx context.Context, path string) (checksum, error) {
	f, err := os.Open(path)
	if err != nil {
		return checksum{}, err
	}
	defer func() { _ = f.Close() }()
	hash := sha256.New()
	size, err := io.Copy(hash, untilDone{ctx, f})
	return checksum{Size: size, SHA256: hex.EncodeToString(hash.Sum(nil))}, err
}

// untilDone is a reader that ends with a context.
type untilDone struct {
	ctx context.Context
	io.Reader
}

func (r untilDone) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(p)
}

// syncPath makes a file's content, or a directory's names, durable.
func syncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return volumeFault("open to sync", err)
	}
	err = f.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) { // file systems that cannot sync a directory
		err = nil
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return volumeFault("sync", err)
	}
	return nil
}
