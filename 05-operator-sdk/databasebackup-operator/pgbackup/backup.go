package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// The files of snapshots, and those in the scratch directory.
const (
	dumpFile    = "dump"
	factsFile   = "facts.json"
	globalsFile = "globals.sql"
)

// facts are what a restore needs to know beside the dump.
type facts struct {
	Roles  []string `json:"roles"` // that own or may use an object, or have a setting
	Owners []owned  `json:"owners"`
}

// owned is an object and its owner.
type owned struct {
	Object    string `json:"object"` // such as: table public.posts
	Role      string `json:"role"`
	Superuser bool   `json:"superuser,omitempty"`
}

// backup takes a backup, unless an earlier pod of the same Job has taken it, and reads it as the mode of verification
// demands.
func (p *program) backup(ctx context.Context) error {
	if err := p.openRepository(ctx, true); err != nil {
		return err
	}
	p.unlock(ctx)
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

// dump dumps the database into the repository.
func (p *program) dump(ctx context.Context) error {
	open, err := p.connect(ctx, p.config.Database)
	if err != nil {
		return err
	}
	defer open.close()
	exported, found, err := p.inspect(ctx, open)
	if err != nil {
		return serverFault(err)
	}
	if err := p.saveGlobals(ctx, found); err != nil {
		return err
	}
	locks := p.watchLocks(ctx)
	t := p.resticTool()
	t.env = append(t.env, p.serverVariables()...)
	version := strings.Fields(open.ParameterStatus("server_version"))[0]
	err = p.save(ctx, t, []string{tagDump, tagVersion + url.QueryEscape(version)},
		"--stdin-filename="+dumpFile, "--stdin-from-command", "--", "pg_dump", "--format=custom", "--compress=0", "--no-password",
		"--encoding="+open.ParameterStatus("server_encoding"), "--snapshot="+exported,
		fmt.Sprintf("--lock-wait-timeout=%d", p.config.Wait.Milliseconds()), databaseOption("dbname", p.config.Database))
	waited := locks()
	switch {
	case err == nil:
		return nil
	case waited != "" && ctx.Err() != nil:
		return because(err, ReasonInterrupted, "pg_dump waited for "+waited)
	case waited != "":
		return because(err, ReasonDumpFailed, "pg_dump waited for "+waited)
	case ctx.Err() != nil:
		return ctx.Err()
	}
	if fault := p.openRepository(ctx, false); fault != nil { // a look at each side shows whose fault it is
		return fault
	}
	return p.dumpFault(ctx, err)
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
	return because(err, ReasonDumpFailed)
}

// inspect begins the transaction whose snapshot pg_dump dumps, and reads the facts in it.
func (p *program) inspect(ctx context.Context, s *session) (exported string, found facts, err error) {
	if err := p.checkVersion(ctx, s); err != nil {
		return "", found, err
	}
	if err := s.do(ctx, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"); err != nil {
		return "", found, err
	}
	names, err := s.column(ctx, "SELECT pg_export_snapshot()")
	if err != nil {
		return "", found, err
	}
	if found.Roles, err = s.column(ctx, selectRoles); err != nil {
		return "", found, err
	}
	owners, err := s.query(ctx, selectOwners)
	for _, row := range owners {
		found.Owners = append(found.Owners, owned{Object: row[0], Role: row[1], Superuser: row[2] == "t"})
	}
	if err != nil {
		return "", found, err
	}
	lost, err := s.column(ctx, extensionRows)
	if len(lost) > 0 {
		p.warn("pg_dump leaves out the rows of tables that belong to extensions: %s", list(lost))
	}
	if err != nil {
		return "", found, err
	}
	fixed, err := s.column(ctx, fixedSettings)
	if len(fixed) > 0 {
		p.warn("settings of the role or the database that the user may not override apply to the dump: %s", list(fixed))
	}
	return names[0], found, err
}

// checkVersion refuses a server that is newer than pg_dump.
func (p *program) checkVersion(ctx context.Context, s *session) error {
	var out strings.Builder
	err := p.run(ctx, tool{name: "pg_dump", args: []string{"--version"}, env: p.environment(), stdout: &out})
	if err != nil {
		return err
	}
	number := func(version string) int {
		digits, _, _ := strings.Cut(strings.Fields(version)[0], ".")
		n, _ := strconv.Atoi(digits)
		return n
	}
	_, version, _ := strings.Cut(out.String(), "(PostgreSQL)")
	server := s.ParameterStatus("server_version")
	if version == "" || number(server) > number(version) {
		return because(nil, ReasonVersionMismatch, fmt.Sprintf("%s and %s", strings.Fields(server)[0], strings.TrimSpace(version)))
	}
	return nil
}

// saveGlobals stores the facts, and the roles of the server without passwords, as a small snapshot. Without permission
// to read the roles, only the facts are stored.
func (p *program) saveGlobals(ctx context.Context, found facts) error {
	dir, err := os.MkdirTemp("", "pgbackup-")
	if err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := writeFacts(dir, found); err != nil {
		return err
	}
	err = p.run(ctx, tool{name: "pg_dumpall", env: p.environment(p.serverVariables()...), args: []string{
		"--globals-only", "--no-role-passwords", "--no-password", "--file=" + filepath.Join(dir, globalsFile),
		databaseOption("database", p.config.Database)}})
	names := []string{factsFile, globalsFile}
	if code(err) != 0 {
		p.warn("pg_dumpall could not dump the roles of the server")
		names, err = names[:1], nil
	}
	if err != nil {
		return err
	}
	t := p.resticTool()
	t.dir = dir
	return p.repositoryFault(ctx, p.save(ctx, t, []string{tagGlobals}, names...), ReasonRepositoryDamaged)
}

func writeFacts(dir string, found facts) error {
	text, err := json.Marshal(found)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, factsFile), text, 0o660)
	}
	if err != nil {
		return fmt.Errorf("write the facts: %w", err)
	}
	return nil
}

// readFacts reads the facts beside a dump. A dump of another origin has none.
func (p *program) readFacts(ctx context.Context, s *snapshot) (found facts, err error) {
	beside, err := p.snapshots(ctx, tagGlobals, tagOwner+s.tag(tagOwner), tagName+s.name())
	if err != nil || len(beside) == 0 {
		return found, err
	}
	text, err := p.restic(ctx, "dump", beside[0].ID, factsFile)
	if err == nil {
		err = json.Unmarshal([]byte(text), &found)
	}
	return found, p.repositoryFault(ctx, err, ReasonRepositoryDamaged)
}

// stage leaves the dump, as the repository holds it, for the container that restores it.
func (p *program) stage(ctx context.Context, s *snapshot) error {
	found, err := p.readFacts(ctx, s)
	if err != nil {
		return err
	}
	err = writeFacts(p.config.Scratch, facts{Roles: found.Roles})
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
