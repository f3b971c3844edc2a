package main

import (
	"context"
	"fmt"
	"os"
)

// restore restores one backup into the database of the settings.
//
// An empty database is filled in one transaction. If the database is missing, or is to be overwritten, the backup is
// restored under another name first. When the new database has all rows it gets the name, and then the old one is
// dropped. So a restore that fails changes nothing.
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
	found, err := p.named(s)
	if err != nil {
		return err
	}
	if err := p.checkArchive(ctx, s, found.facts); err != nil {
		return err
	}
	if p.config.Database == "" {
		p.config.Database = found.facts.Database
	}
	unlockTarget, err := p.lockTarget(ctx)
	if err != nil {
		return err
	}
	defer unlockTarget()
	return p.restoreFound(ctx, s, found)
}

// restoreFound restores a backup that passed Archive, while no other run restores into the same database.
func (p *program) restoreFound(ctx context.Context, s *store, found backup) error {
	target, err := p.inspect(ctx)
	if err != nil {
		return err
	}
	if target.exists && !target.empty && !p.config.Overwrite {
		return p.restoredAlready(ctx, found.facts)
	}
	created, err := p.createRoles(ctx, found.facts.Roles)
	if err != nil {
		return err
	}
	p.step("roles")
	dump := s.path(found.Name, suffixDump)
	var tables map[string]int64
	if target.exists && target.empty {
		tables, err = p.restoreInto(ctx, p.config.Database, dump, found.facts)
	} else {
		tables, err = p.restoreAside(ctx, dump, found.facts, target)
	}
	if err != nil {
		return err
	}
	r := p.restored(tables)
	r.Replaced, r.RolesCreated = target.exists && !target.empty, created
	p.succeed(ReasonRestoreSucceeded, "backup %s was restored into database %q: %d tables, %d rows",
		found.Name, r.Database, r.Tables, r.Rows)
	return nil
}

// restored records the content of the restored database.
func (p *program) restored(tables map[string]int64) *Restored {
	r := &Restored{Database: p.config.Database, Tables: len(tables)}
	for _, rows := range tables {
		r.Rows += rows
	}
	p.result.Restored = r
	return r
}

// restoredAlready examines a database that is not empty and must not be replaced. If a run was killed after its last
// step, the rows of the backup are there, and the restore has succeeded. Any other database is refused.
func (p *program) restoredAlready(ctx context.Context, facts *factsFile) error {
	tables, err := compareRows(ctx, p.target, p.config.Database, facts)
	if err != nil && reasonOf(err) != ReasonRowsDiffer {
		return err
	}
	if err != nil {
		return failf(ReasonTargetNotEmpty,
			"database %q is not empty: restore into another one, or set BACKUP_OVERWRITE=true to replace it", p.config.Database)
	}
	r := p.restored(tables)
	p.succeed(ReasonRestoreSucceeded,
		"database %q was restored already: each table has as many rows as in backup %s, %d tables, %d rows; "+
			"nothing was changed",
		r.Database, facts.Name, r.Tables, r.Rows)
	return nil
}

// restoreInto restores into an empty database.
func (p *program) restoreInto(ctx context.Context, database, dump string, facts *factsFile) (map[string]int64, error) {
	p.step("restoring")
	file, err := os.Open(dump)
	if err != nil {
		return nil, volumeFault("read the dump", err)
	}
	defer func() { _ = file.Close() }()
	if err := p.target.restore(ctx, database, file, true); err != nil {
		doing := fmt.Sprintf("restore into database %q", p.config.Database)
		return nil, classify(err, doing, ReasonRestoreFailed, workPatterns)
	}
	p.step("filled")
	return compareRows(ctx, p.target, database, facts)
}
