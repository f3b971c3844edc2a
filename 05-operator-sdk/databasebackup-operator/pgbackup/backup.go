package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// The files of snapshots, and those in the scratch directory.
const (
	dumpFile     = "dump"
	globalsFile  = "globals.sql"
	rolesFile    = "roles.json"
	verifiedFile = "verified"
)

// backup takes a backup, unless an earlier pod of the same Job has taken it, and reads it as the mode of verification
// demands.
func (p *program) backup(ctx context.Context) error {
	if err := p.openRepository(ctx, true); err != nil {
		return err
	}
	reason := ReasonAlreadyComplete
	taken, err := p.find(ctx)
	if err != nil && faultOf(err).reason == ReasonSnapshotNotFound {
		reason = ReasonBackupSucceeded
		if err = p.dump(ctx); err == nil {
			taken, err = p.find(ctx)
		}
	}
	if err != nil {
		return err
	}
	b := taken.facts()
	p.result.Backup = b
	switch p.config.Verify {
	case ModeArchive:
		resticErr, err := p.pipe(ctx, p.resticTool("dump", taken.ID, dumpFile),
			tool{name: "pg_restore", args: []string{"--file=/dev/null"}, env: p.environment()}, true)
		if err := p.archiveFault(ctx, resticErr, err); err != nil {
			return err
		}
		b.Verified = &Verified{ModeArchive, now()}
	case ModeRestore:
		if err := p.stage(ctx, taken); err != nil {
			return err
		}
	}
	p.succeed(reason, "snapshot %s of database %q has %d bytes, of which the repository stored %d", b.Snapshot, b.Database,
		b.Size, b.Stored)
	return nil
}

// archiveFault is the error of a restic and a pg_restore that only reads what restic prints.
func (p *program) archiveFault(ctx context.Context, resticErr, err error) error {
	if resticErr != nil {
		return p.repositoryFault(ctx, resticErr, ReasonRepositoryDamaged)
	}
	if code(err) != 0 {
		return because(err, ReasonArchiveUnreadable)
	}
	return err
}

// dump dumps the database into the repository. Tags name the roles of the dump, and whether only superusers own objects,
// as the snapshot shows them that pg_dump dumps: a restore by a superuser relies on that.
func (p *program) dump(ctx context.Context) error {
	open, err := p.connect(ctx, p.config.Database)
	if err != nil {
		return err
	}
	defer open.close()
	server, image, err := p.versions(ctx, open, "pg_dump")
	switch {
	case err != nil:
		return err
	case server > image:
		return because(nil, ReasonVersionMismatch, fmt.Sprintf("%d and %d", server, image))
	case server < image:
		p.warn("the server has PostgreSQL %d, and the image %d: a restore needs a server of %d or newer", server, image, image)
	}
	if err := open.do(ctx, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"); err != nil {
		return err
	}
	exported, err := open.column(ctx, "SELECT pg_export_snapshot()")
	if err != nil {
		return serverFault(err)
	}
	tags, err := p.describe(ctx, open)
	if err != nil {
		return serverFault(err)
	}
	err = p.save(ctx, []string{tagGlobals}, globalsFile, "pg_dumpall", "--globals-only", "--no-role-passwords", "--no-password",
		databaseOption("database", p.config.Database))
	if code(err) != 0 {
		p.warn("the roles of the server are not in the backup: pg_dumpall failed, perhaps for lack of permission")
	} else if err != nil {
		return err
	}
	err = p.save(ctx, tags, dumpFile, "pg_dump", "--format=custom", "--compress=0", "--no-password",
		"--encoding="+open.ParameterStatus("server_encoding"), "--snapshot="+exported[0],
		fmt.Sprintf("--lock-wait-timeout=%d", p.config.wait().Milliseconds()), databaseOption("dbname", p.config.Database))
	if code(err) == 0 || ctx.Err() != nil {
		return err
	}
	if fault := p.openRepository(ctx, false); fault != nil { // a look at each side shows whose fault it is
		return fault
	}
	return p.dumpFault(ctx, err)
}

// describe returns the tags of a dump, and warns of what no tool can change.
func (p *program) describe(ctx context.Context, s *session) ([]string, error) {
	tags := []string{tagDump, tagVersion + url.QueryEscape(strings.Fields(s.ParameterStatus("server_version"))[0])}
	roles, err := s.query(ctx, selectRoles)
	if err != nil {
		return nil, err
	}
	onlySuperusers := true
	for _, role := range roles {
		key := tagRole
		if role[1] == "t" {
			key, onlySuperusers = tagRoleOwner, onlySuperusers && role[2] == "t"
		}
		tags = append(tags, key+url.QueryEscape(role[0]))
	}
	if onlySuperusers {
		tags = append(tags, tagSuperusers)
	}
	lost, err := s.column(ctx, extensionRows)
	if err != nil {
		return nil, err
	}
	if len(lost) > 0 {
		p.warn("pg_dump leaves out the rows of tables that belong to extensions: %s", list(lost))
	}
	fixed, err := s.column(ctx, fixedSettings)
	if len(fixed) > 0 {
		p.warn("settings of the role or the database that the user may not override apply to the dump: %s", list(fixed))
	}
	return tags, err
}

// dumpFault finds the reason why pg_dump failed.
func (p *program) dumpFault(ctx context.Context, err error) error {
	open, fault := p.connect(ctx, p.config.Database)
	if fault != nil {
		return fault
	}
	defer open.close()
	denied, fault := open.column(ctx, deniedTables)
	if fault != nil {
		return serverFault(fault)
	}
	if len(denied) > 0 {
		return because(err, ReasonPermissionDenied, "it may not read "+list(denied))
	}
	locked, fault := open.column(ctx, heldLocks)
	if fault == nil && len(locked) > 0 {
		return because(err, ReasonDumpFailed, "it may have waited too long for the lock of "+list(locked))
	}
	return because(err, ReasonDumpFailed)
}

// versions returns the major versions of the server and of one of PostgreSQL's programs in the image.
func (p *program) versions(ctx context.Context, s *session, name string) (server, image int, err error) {
	var out strings.Builder
	if err := p.run(ctx, tool{name: name, args: []string{"--version"}, env: p.environment(), stdout: &out}); err != nil {
		return 0, 0, err
	}
	_, version, _ := strings.Cut(out.String(), "(PostgreSQL)")
	_, err = fmt.Sscan(version, &image)
	if err == nil {
		_, err = fmt.Sscan(s.ParameterStatus("server_version"), &server)
	}
	return server, image, err
}

// stage leaves the dump, as the repository holds it, for the container that restores it.
func (p *program) stage(ctx context.Context, s *snapshot) error {
	roles, err := json.Marshal(append(s.tags(tagRole), s.tags(tagRoleOwner)...))
	if err == nil {
		err = os.WriteFile(filepath.Join(p.config.Scratch, rolesFile), roles, 0o660)
	}
	if err != nil {
		return because(err, ReasonScratchFailed)
	}
	file, err := os.Create(filepath.Join(p.config.Scratch, dumpFile))
	if err != nil {
		return because(err, ReasonScratchFailed)
	}
	t := p.resticTool("dump", s.ID, dumpFile)
	t.stdout = file
	err = p.run(ctx, t)
	if closed := file.Close(); err == nil && closed != nil || code(err) != 0 && noSpace(p.config.Scratch) {
		return because(err, ReasonScratchFailed)
	}
	return p.repositoryFault(ctx, err, ReasonRepositoryDamaged)
}
