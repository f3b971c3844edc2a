package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// backup takes a backup, unless the backup exists already, verifies it in the mode of the settings, and prunes older
// backups. Before that it finishes or removes the temporary files of killed runs.
func (p *program) backup(ctx context.Context) error {
	s, err := p.open(true)
	if err != nil {
		return err
	}
	unlock, err := s.lock(ctx, false, p.config.Wait)
	if err != nil {
		if reasonOf(err) == ReasonVolumeNotWritable { // perhaps it can be read, and no other run changes it
			p.list(s)
		}
		return err
	}
	defer unlock()
	defer p.list(s)
	if err := s.recover(ctx, p.config.Name, p.now()); err != nil {
		return err
	}
	taken := s.backup(p.config.Name)
	reason := ReasonAlreadyComplete
	if taken.State == "" || taken.State == StateBroken || taken.State == StateMissing || taken.State == StateUnknown {
		if err := p.dump(ctx, s); err != nil {
			if reasonOf(err) == ReasonVolumeFull {
				p.tidy(ctx, s) // so that the next try may find space
			}
			return err
		}
		if taken = s.backup(p.config.Name); taken.State != StateUnverified {
			return failf(ReasonVolumeFailed, "the dump changed on the volume while it was taken: it is %s", taken.State)
		}
		reason = ReasonBackupSucceeded
	}
	facts := taken.facts
	p.result.Backup = facts.facts()
	var failed error
	if !facts.Verified.mode().includes(p.config.Verify) {
		failed = p.verifyAndRecord(ctx, s, facts)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	// Retention does not count a broken dump, so it runs even after a failure. Otherwise failed runs would fill the
	// volume.
	p.tidy(ctx, s)
	if failed != nil {
		return failed
	}
	f := p.result.Backup
	p.succeed(reason, "backup %s of database %q has %d bytes, %d tables and %d rows, verified: %s%s",
		f.Name, f.Database, f.Size, f.Tables, f.Rows, f.Verified.mode(), f.notCounted())
	return nil
}

// tidy applies retention after a backup. A failure is only a warning.
func (p *program) tidy(ctx context.Context, s *store) {
	err := p.checkAgain(ctx, s)
	if err == nil {
		err = p.retain(ctx, s)
	}
	if err != nil {
		p.result.Warning = "retention: " + p.line(err)
		p.log.Warn("Failed to prune", "error", p.line(err))
	}
}

// notCounted is the part of a message about tables whose rows were not counted.
func (f *Facts) notCounted() string {
	if len(f.NotCounted) == 0 || f.Verified.mode() == ModeNone {
		return ""
	}
	return "; rows were not counted of " + strings.Join(f.NotCounted, ", ")
}

// dump takes a new dump and gives it its final name when the whole dump is on the disk. Then it counts the rows.
func (p *program) dump(ctx context.Context, s *store) error {
	version, major, err := p.target.version(ctx, "pg_dump")
	if err != nil {
		return err
	}
	started := p.now().UTC().Truncate(time.Millisecond)
	open, err := p.connect(ctx, p.config.Database)
	if err != nil {
		return err
	}
	defer func() { _ = open.close() }()
	source, err := open.begin(ctx)
	if err != nil {
		return classify(err, "export a snapshot", ReasonDumpFailed, workPatterns, p.config.Database, p.config.User)
	}
	if source.VersionNumber/10000 > major {
		return failf(ReasonVersionMismatch,
			"the server is PostgreSQL %s, and pg_dump of version %s cannot dump a newer one: use an image of that version",
			source.Version, version)
	}
	p.step("snapshot")
	facts := newFactsFile(p.config, s, source, version, started)
	if err := p.dumpFiles(ctx, s, source, facts); err != nil {
		return err
	}
	p.log.Info("Dumped database", "backup", facts.Name, "bytes", facts.Size, "tables", len(source.Tables),
		"took", facts.Completed.Sub(started).String())
	return p.countRows(ctx, s, open, source.Tables, facts)
}

// countRows counts the rows of a backup that is complete, and adds them to its facts. Without verification no row count
// is needed.
func (p *program) countRows(ctx context.Context, s *store, open *session, tables []table, facts *factsFile) error {
	if p.config.Verify == ModeNone {
		return nil
	}
	found, _ := open.count(ctx, tables) // each table that was not counted has its reason
	if ctx.Err() != nil {
		return ctx.Err()
	}
	p.step("counted")
	facts.Tables, facts.NotCounted = found.rows, found.notCounted
	if err := s.record(facts); err != nil {
		p.log.Warn("Failed to record the numbers of rows", "error", p.line(err))
	}
	return nil
}

// dumpFiles writes the files of a backup under temporary names, and commits them.
func (p *program) dumpFiles(ctx context.Context, s *store, source snapshot, facts *factsFile) (err error) {
	run := newRun()
	committing := false
	defer func() {
		if err != nil && !committing { // after the start of the commit, the next run finishes it
			s.removeRun(p.config.Name, run)
		}
	}()
	if facts.Size, facts.SHA256, err = p.dumpDatabase(ctx, s, source, run); err != nil {
		return err
	}
	if facts.Globals, err = p.dumpGlobals(ctx, s, source, run); err != nil {
		return err
	}
	facts.Completed = p.now().UTC().Truncate(time.Millisecond)
	p.step("facts")
	if err := s.prepareFacts(facts, run); err != nil {
		return err
	}
	p.step("prepared")
	committing = true
	return s.commit(facts.Name, run)
}

// newFactsFile returns the facts that are known before the dump. No row is counted yet.
func newFactsFile(c Config, s *store, source snapshot, version string, started time.Time) *factsFile {
	reason := "the run ended before"
	if c.Verify == ModeNone {
		reason = "verification None does not need it"
	}
	facts := &factsFile{
		Format: 1, Owner: c.Owner, collation: source.collation(),
		Dump: Dump{Name: c.Name, Database: c.Database, Path: s.path(c.Name, suffixDump), Started: started,
			ServerVersion: source.Version, PgDumpVersion: version},
		Tables: map[string]int64{}, NotCounted: map[string]string{},
		LargeObjects: source.LargeObjects, Roles: source.Roles, Properties: source.Properties,
	}
	for _, t := range source.Tables {
		facts.NotCounted[t.Name] = reason
	}
	slices.Sort(facts.Roles)
	return facts
}

// dumpDatabase dumps the database, as the snapshot shows it, into a temporary file, and returns the file's size and
// checksum. The dump has the encoding of the database, so that no byte is converted: some databases have bytes that
// their encoding does not allow.
func (p *program) dumpDatabase(
	ctx context.Context, s *store, source snapshot, run string,
) (size int64, sha string, err error) {
	path := s.temporary(p.config.Name, suffixDump, run)
	err = p.target.withEncoding("").run(ctx, tool{
		name: "pg_dump",
		args: []string{"--format=custom", "--no-password", "--encoding=" + source.Encoding, "--snapshot=" + source.ID,
			"--file=" + path, databaseOption("dbname", p.config.Database)},
		started: func() { p.step("dumping") },
	})
	if err != nil {
		return 0, "", classify(err, fmt.Sprintf("dump database %q", p.config.Database), ReasonDumpFailed, workPatterns,
			p.config.Database, p.config.User)
	}
	p.step("dumped")
	have, err := synced(ctx, path)
	return have.Size, have.SHA256, err
}

// dumpGlobals writes the roles of the server, their attributes, memberships and settings, without passwords: hashes
// on a backup volume invite an attack, and only superusers may read them.
func (p *program) dumpGlobals(ctx context.Context, s *store, source snapshot, run string) (checksum, error) {
	path := s.temporary(p.config.Name, suffixGlobals, run)
	err := p.target.withEncoding("").run(ctx, tool{
		name: "pg_dumpall",
		args: []string{"--globals-only", "--no-role-passwords", "--no-password",
			"--encoding=" + textEncoding(source.Encoding), "--file=" + path,
			databaseOption("database", p.config.Database)},
	})
	if err != nil {
		return checksum{}, classify(err, "dump the globals", ReasonDumpFailed, workPatterns, p.config.Database, p.config.User)
	}
	p.step("globals")
	return synced(ctx, path)
}

// synced makes a file durable and computes its checksum.
func synced(ctx context.Context, path string) (checksum, error) {
	if err := syncPath(path); err != nil {
		return checksum{}, err
	}
	have, err := sum(ctx, path)
	if err != nil && ctx.Err() == nil {
		err = volumeFault("read the file", err)
	}
	return have, err
}
