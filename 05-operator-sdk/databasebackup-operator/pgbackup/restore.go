package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
)

// restore restores one backup into the database of the settings.
//
// The backup is restored under another name first. When the new database has all rows it gets the name, and then the
// old database is dropped. So a restore that fails changes nothing.
func (p *program) restore(ctx context.Context) error {
	s, err := p.open(false)
	if err != nil {
		return err
	}
	unlock, err := s.lock(ctx, true, p.config.Wait)
	if err != nil {
		return err
	}
	defer unlock()
	found := s.backup(p.config.Name)
	if found.facts == nil {
		return failf(ReasonBackupNotFound, "backup %s of owner %s is not in %s",
			p.config.Name, p.config.Owner, p.config.Dir)
	}
	p.result.Backup = found.facts.facts()
	p.config.Database = cmp.Or(p.config.Database, found.facts.Database)
	if slices.Contains(serverDatabases, p.config.Database) {
		return refusedTarget(p.config.Database, "the server itself needs it")
	}
	if err := p.checkArchive(ctx, s, found.facts); err != nil {
		return err
	}
	held, err := p.lockTarget(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = held.close() }()
	target, err := p.inspect(ctx)
	if err != nil {
		return err
	}
	return p.restoreFound(ctx, s, found, target)
}

// restoreFound restores a backup that passed Archive, while no other run restores into the same database.
func (p *program) restoreFound(ctx context.Context, s *store, found backup, target targetState) error {
	if target.Row.IsTemplate {
		return refusedTarget(p.config.Database, "it is a template")
	}
	if target.Finished != "" {
		return p.finished(ctx, found.facts, target)
	}
	if err := p.refuseData(target); err != nil {
		return err
	}
	if err := p.restoreAside(ctx, s.path(found.Name, suffixDump), found.facts, target); err != nil {
		return err
	}
	r := p.result.Restored
	origin := "of the backup"
	if target.OwnProperties {
		origin = "that it had before"
	}
	p.succeed(ReasonRestoreSucceeded, "backup %s was restored into database %q: %d tables, %d rows; "+
		"it has the owner, the grants and the settings %s", found.Name, r.Database, r.Tables, r.Rows, origin)
	return nil
}

// restored returns the content of the restored database.
func (p *program) restored(tables map[string]int64) *Restored {
	r := &Restored{Database: p.config.Database, Tables: len(tables)}
	for _, rows := range tables {
		r.Rows += rows
	}
	p.result.Restored = r
	return r
}

// finished handles a restore that an earlier run has finished, but whose result is not known, because that run was
// killed. Whatever users have changed since then stays.
func (p *program) finished(ctx context.Context, facts *factsFile, target targetState) error {
	aside, replaced := asideNames(p.config)
	if err := p.drop(ctx, aside, replaced); err != nil {
		return err
	}
	r := p.restored(facts.Tables)
	r.Replaced = target.Finished == markReplaced
	p.succeed(ReasonRestoreSucceeded, "an earlier run of this restore has restored backup %s into database %q: "+
		"%d tables, %d rows; nothing was changed; the log of that run has its warnings",
		facts.Name, r.Database, r.Tables, r.Rows)
	return nil
}

// fill restores into a new database, and compares the restored rows with the dumped rows.
func (p *program) fill(ctx context.Context, database, dump string, facts *factsFile) (map[string]int64, error) {
	p.step("restoring")
	file, err := os.Open(dump)
	if err != nil {
		return nil, volumeFault("read the dump", err)
	}
	defer func() { _ = file.Close() }()
	if err := p.target.restore(ctx, database, file); err != nil {
		doing := fmt.Sprintf("restore into database %q", p.config.Database)
		return nil, classify(err, doing, ReasonRestoreFailed, workPatterns)
	}
	p.step("filled")
	return compareRows(ctx, p.target, database, facts)
}
