package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"
)

// verifyAndRecord verifies in the mode of the settings, and records the outcome.
func (p *program) verifyAndRecord(ctx context.Context, s *store, facts *factsFile) error {
	passed, err := p.check(ctx, s, facts, p.config.Verify)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	p.step("verified")
	now := p.now().UTC().Truncate(time.Millisecond)
	if passed != ModeNone {
		facts.Verified, facts.Failure = &Verified{Mode: passed, Time: now}, nil
	}
	if err != nil {
		facts.fail(Failure{Mode: ModeRestore, Reason: reasonOf(err), Message: shorten(p.line(err), messageLimit), Time: now})
		if passed == ModeNone {
			facts.Failure.Mode = ModeArchive
		}
	}
	err = errors.Join(err, s.record(facts))
	p.result.Backup = facts.facts()
	if err == nil {
		p.log.Info("Verified backup", "backup", facts.Name, "mode", p.config.Verify)
	}
	return err
}

// checkAgain verifies backups that a restore found damaged, in the mode Archive. A restore mounts the volume read-only,
// and cannot record what it found. Retention does not count a broken dump, so it runs after this.
func (p *program) checkAgain(ctx context.Context, s *store) error {
	for _, name := range p.config.CheckAgain {
		found := s.backup(name)
		if found.facts == nil || found.State == StateBroken || found.State == StateMissing {
			continue
		}
		err := p.checkArchive(ctx, s, found.facts)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !faulty[reasonOf(err)] {
			continue
		}
		found.facts.fail(Failure{Mode: ModeArchive, Reason: reasonOf(err), Message: shorten(p.line(err), messageLimit),
			Time: p.now().UTC().Truncate(time.Millisecond)})
		if err := s.record(found.facts); err != nil {
			return err
		}
		p.log.Warn("Found a damaged backup", "backup", name, "reason", reasonOf(err))
	}
	return nil
}

// fail records a verification that did not pass. Only evidence against the dump undoes an earlier verification.
func (s *factsFile) fail(failure Failure) {
	s.Failure = &failure
	if faulty[failure.Reason] {
		s.Verified = nil
	}
}

// check verifies a backup. passed is the strongest part that succeeded.
func (p *program) check(ctx context.Context, s *store, facts *factsFile, mode Mode) (passed Mode, err error) {
	if mode == ModeNone {
		return ModeNone, nil
	}
	if err := p.checkArchive(ctx, s, facts); err != nil {
		return ModeNone, err
	}
	if mode == ModeArchive {
		return ModeArchive, nil
	}
	// The whole dump is read before the scratch server gets it, because a failure of that server is not evidence.
	if err := p.readArchive(ctx, facts, s.path(facts.Name, suffixDump), "--file=/dev/null", io.Discard); err != nil {
		return ModeArchive, err
	}
	if err := p.checkRestore(ctx, s, facts); err != nil {
		return ModeArchive, err
	}
	return ModeRestore, nil
}

// checkArchive compares the files with the facts, and reads the table of contents.
func (p *program) checkArchive(ctx context.Context, s *store, facts *factsFile) error {
	for _, file := range []struct {
		suffix string
		want   checksum
	}{{suffixDump, facts.dump()}, {suffixGlobals, facts.Globals}} {
		path := s.path(facts.Name, file.suffix)
		have, err := sum(ctx, path)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, fs.ErrNotExist):
			return failf(ReasonFileMissing, "%s is not there", path)
		case err != nil:
			return volumeFault("read the file", err)
		case have != file.want:
			return failf(ReasonChecksumMismatch, "%s has %d bytes with SHA-256 %.12s…, and %d with %.12s… were written",
				path, have.Size, have.SHA256, file.want.Size, file.want.SHA256)
		}
	}
	entries, tables, err := p.contents(ctx, facts, s.path(facts.Name, suffixDump))
	if err != nil {
		return err
	}
	if entries == 0 {
		return failf(ReasonArchiveUnreadable, "the table of contents of %s is empty", facts.Name)
	}
	if tables < len(facts.Tables) {
		return failf(ReasonArchiveIncomplete, "backup %s has data of %d tables, and %d were dumped",
			facts.Name, tables, len(facts.Tables))
	}
	return nil
}

// contents reads the table of contents of a dump: the number of entries, and the number of tables with data.
func (p *program) contents(ctx context.Context, facts *factsFile, path string) (entries, tables int, err error) {
	var list bytes.Buffer
	if err := p.readArchive(ctx, facts, path, "--list", &list); err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(list.String()) {
		if count, ok := strings.CutPrefix(line, ";     TOC Entries: "); ok {
			_, _ = fmt.Sscan(count, &entries)
		}
		if !strings.HasPrefix(line, ";") && strings.Contains(line, " TABLE DATA ") {
			tables++
		}
	}
	return entries, tables, nil
}

// readArchive has pg_restore read a dump without a server. If it cannot, that is evidence against the dump, unless this
// pg_restore is older than the pg_dump that wrote it.
func (p *program) readArchive(ctx context.Context, facts *factsFile, path, how string, out io.Writer) error {
	tools := server{environ: plainEnvironment(p.config.environ)}
	err := tools.run(ctx, tool{name: "pg_restore", args: []string{how, path}, stdout: out})
	if _, failed := errors.AsType[*toolError](err); !failed {
		return err
	}
	version, major, versionErr := tools.version(ctx, "pg_restore")
	if versionErr != nil {
		return versionErr
	}
	wrote := 0
	if _, err := fmt.Sscan(facts.PgDumpVersion, &wrote); err == nil && major < wrote {
		return failf(ReasonVersionMismatch,
			"pg_restore of version %s cannot read a dump of version %s: use an image of that version",
			version, facts.PgDumpVersion)
	}
	return classify(err, "read the dump", ReasonArchiveUnreadable, nil)
}
