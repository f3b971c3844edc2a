package main

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
)

// part is the part of a restore to which an entry of a dump belongs.
type part int

const (
	partMain     part = iota // as a role without the rights of a superuser: this part runs code of the tables' owners
	partFirst                // what only the user of the settings may create, and what runs no code of an owner
	partLast                 // grants and publications, when each object has its owner
	partDatabase             // the database itself, its settings, grants and comment
	partLeftOut              // what would act on the next statement, or connect to another server: a person adds it
)

// kinds are the kinds of entries that do not belong to the main part.
var kinds = []struct {
	kind string
	part part
}{
	{"EVENT TRIGGER", partLeftOut}, {"SUBSCRIPTION TABLE", partLeftOut}, {"SUBSCRIPTION", partLeftOut},
	{"SCHEMA", partFirst}, {"EXTENSION", partFirst}, {"FOREIGN DATA WRAPPER", partFirst}, {"SERVER", partFirst},
	{"USER MAPPING", partFirst}, {"PROCEDURAL LANGUAGE", partFirst},
	{"ACL", partLast}, {"DEFAULT ACL", partLast}, {"PUBLICATION", partLast}, {"SECURITY LABEL", partLast},
	{"DATABASE", partDatabase},
}

// entry is a line of the list of a dump's contents, which pg_restore --list prints and --use-list reads.
type entry struct {
	line string
	text string // without the numbers: the kind, the schema or -, the name, the owner
	part part
}

var entryForm = regexp.MustCompile(`^\d+; \d+ \d+ (.*)$`)

// parseContents reads a list of contents. Comments on an object of the first part need its owner, so they come last.
func parseContents(list string) (entries []entry) {
	for line := range strings.Lines(list) {
		line = strings.TrimSuffix(line, "\n")
		match := entryForm.FindStringSubmatch(line)
		if match == nil {
			continue
		}
		e := entry{line: line, text: match[1]}
		about := e.text
		for _, prefix := range []string{"COMMENT - ", "ACL - ", "SECURITY LABEL - "} {
			about = strings.TrimPrefix(about, prefix)
		}
		for _, k := range kinds {
			if strings.HasPrefix(about, k.kind+" ") {
				e.part = k.part
				break
			}
		}
		if about != e.text && (e.part == partFirst || e.part == partMain && !strings.HasPrefix(e.text, "COMMENT ")) {
			e.part = partLast
		}
		entries = append(entries, e)
	}
	return entries
}

// is reports whether an entry is of a kind.
func (e entry) is(kind string) bool { return strings.HasPrefix(e.text, kind+" ") }

// name is the entry without its owner, such as: event trigger audit.
func (e entry) name(kind string) string {
	text := strings.TrimPrefix(e.text, kind+" ")
	if at := strings.LastIndexByte(text, ' '); at > 0 {
		text = text[:at]
	}
	text = strings.TrimPrefix(text, "- ")
	return strings.ToLower(kind) + " " + strings.Replace(text, " ", ".", 1)
}

// split returns the entries of the parts, and the names of those that are left out. The rows of materialized views are
// left out where they may come from a server that does not answer.
func split(entries []entry) (parts map[part][]entry, leftOut []string) {
	parts = map[part][]entry{}
	foreign := false
	for _, e := range entries {
		foreign = foreign || e.is("FOREIGN TABLE")
	}
	for _, e := range entries {
		for _, kind := range []string{"EVENT TRIGGER", "SUBSCRIPTION"} {
			if e.is(kind) && !e.is("SUBSCRIPTION TABLE") {
				leftOut = append(leftOut, e.name(kind))
			}
		}
		if foreign && e.is("MATERIALIZED VIEW DATA") {
			leftOut = append(leftOut, "rows of "+strings.Replace(e.name("MATERIALIZED VIEW DATA"), " data", "", 1))
			e.part = partLeftOut
		}
		parts[e.part] = append(parts[e.part], e)
	}
	return parts, leftOut
}

// archive is a dump: in the repository, or a file.
type archive struct {
	p        *program
	snapshot *snapshot
	path     string
}

// restore has pg_restore restore entries. With whole, it reads all of the archive.
func (a archive) restore(ctx context.Context, entries []entry, whole bool, t tool) (resticErr, err error) {
	if len(entries) == 0 {
		return nil, nil
	}
	file, err := os.CreateTemp("", "pgbackup-list-")
	if err != nil {
		return nil, fmt.Errorf("make a list: %w", err)
	}
	defer func() { _ = os.Remove(file.Name()) }()
	for _, e := range entries {
		if _, err := fmt.Fprintln(file, e.line); err != nil {
			return nil, fmt.Errorf("write a list: %w", err)
		}
	}
	if err := file.Close(); err != nil {
		return nil, fmt.Errorf("write a list: %w", err)
	}
	t.name, t.args = "pg_restore", append(t.args, "--use-list="+file.Name(), "--no-tablespaces", "--no-password")
	return a.read(ctx, whole, t)
}

// read has pg_restore read the archive.
func (a archive) read(ctx context.Context, whole bool, t tool) (resticErr, err error) {
	if a.snapshot == nil {
		t.args = append(t.args, a.path)
		return nil, a.p.run(ctx, t)
	}
	return a.p.pipe(ctx, a.p.resticTool("dump", a.snapshot.ID, dumpFile), t, whole)
}

// contents returns the entries of the archive.
func (a archive) contents(ctx context.Context) ([]entry, error) {
	var out strings.Builder
	resticErr, err := a.read(ctx, false, tool{name: "pg_restore", args: []string{"--list", "--create"}, env: a.p.environment(),
		stdout: &out})
	return parseContents(out.String()), a.p.archiveFault(ctx, resticErr, err)
}

// databaseStatement returns the options of the statement that creates the dumped database, and its owner, both as SQL.
func (a archive) databaseStatement(ctx context.Context, entries []entry) (options, owner string, err error) {
	var database []entry
	for _, e := range entries {
		if e.is("DATABASE") && !e.is("DATABASE PROPERTIES") {
			database = append(database, e)
		}
	}
	var out strings.Builder
	resticErr, err := a.restore(ctx, database, false, tool{args: []string{"--create", "--file=-"}, env: a.p.environment(),
		stdout: &out})
	owner = strings.TrimPrefix(statementAfter(out.String(), "ALTER DATABASE "), "OWNER TO ")
	return statementAfter(out.String(), "CREATE DATABASE "), owner, a.p.archiveFault(ctx, resticErr, err)
}

// statementAfter returns what follows the name of the database in the first statement with a beginning.
func statementAfter(script, beginning string) string {
	_, rest, _ := strings.Cut("\n"+script, "\n"+beginning)
	if strings.HasPrefix(rest, `"`) {
		for rest = rest[1:]; rest != ""; rest = rest[1:] {
			if strings.HasPrefix(rest, `""`) {
				rest = rest[1:]
			} else if rest[0] == '"' {
				rest = rest[1:]
				break
			}
		}
	}
	_, rest, _ = strings.Cut(rest, " ")
	statement, _, _ := strings.Cut(rest, ";\n")
	return statement
}
