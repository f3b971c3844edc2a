package main

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
)

// entry is a line of the list of a dump's contents, which pg_restore --list prints and --use-list reads.
type entry struct {
	line string
	text string // without the numbers: the kind, the schema or -, the name, the owner
}

var entryForm = regexp.MustCompile(`^\d+; \d+ \d+ (.*)$`)

// parseContents reads a list of contents.
func parseContents(list string) (entries []entry) {
	for line := range strings.Lines(list) {
		line = strings.TrimSuffix(line, "\n")
		if match := entryForm.FindStringSubmatch(line); match != nil {
			entries = append(entries, entry{line: line, text: match[1]})
		}
	}
	return entries
}

// is reports whether an entry is of one of the kinds, or a comment on such an object.
func (e entry) is(kinds ...string) bool {
	text := strings.TrimPrefix(e.text, "COMMENT - ")
	return slices.ContainsFunc(kinds, func(kind string) bool { return strings.HasPrefix(text, kind+" ") })
}

// belongsTo reports whether an entry has one of the owners. The owner of the database is another matter.
func (e entry) belongsTo(owners []string) bool {
	return e.is("DATABASE", "DATABASE PROPERTIES", "ACL - DATABASE") ||
		slices.ContainsFunc(owners, func(owner string) bool { return strings.HasSuffix(e.text, " "+owner) })
}

// name is the entry without its owner, such as: event trigger - audit.
func (e entry) name() string {
	words := strings.Fields(e.text)
	return strings.ReplaceAll(strings.ToLower(strings.Join(words[:len(words)-1], " ")), " - ", " ")
}

// split returns the entries to restore, and the names of those that a restore leaves out: what would act on the next
// statement or connect to another server, and the rows of materialized views where they may come from a server that does
// not answer. A person adds them.
func split(entries []entry) (kept []entry, leftOut []string) {
	out := []string{"EVENT TRIGGER", "SUBSCRIPTION", "SUBSCRIPTION TABLE"}
	if slices.ContainsFunc(entries, func(e entry) bool { return e.is("FOREIGN TABLE") }) {
		out = append(out, "MATERIALIZED VIEW DATA")
	}
	for _, e := range entries {
		switch {
		case !e.is(out...):
			kept = append(kept, e)
		case !e.is("SUBSCRIPTION TABLE") && !strings.HasPrefix(e.text, "COMMENT"):
			leftOut = append(leftOut, e.name())
		}
	}
	return kept, leftOut
}

// only returns the entries that a condition holds for.
func only(entries []entry, condition func(entry) bool) []entry {
	return slices.DeleteFunc(slices.Clone(entries), func(e entry) bool { return !condition(e) })
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

// databaseForm is a statement about the dumped database, whose name it skips.
var databaseForm = regexp.MustCompile(`(?s)\n(CREATE|ALTER) DATABASE (?:"(?:[^"]|"")*"|[^" ]+) (.*?);\n`)

// databaseStatement returns the options of the statement that creates the dumped database, and its owner, both as SQL.
func (a archive) databaseStatement(ctx context.Context, entries []entry) (options, owner string, err error) {
	var out strings.Builder
	resticErr, err := a.restore(ctx, only(entries, func(e entry) bool { return strings.HasPrefix(e.text, "DATABASE - ") }), false,
		tool{args: []string{"--create", "--file=-"}, env: a.p.environment(), stdout: &out})
	for _, statement := range databaseForm.FindAllStringSubmatch("\n"+out.String(), -1) {
		if statement[1] == "CREATE" {
			options = statement[2]
		} else if name, ok := strings.CutPrefix(statement[2], "OWNER TO "); ok {
			owner = name
		}
	}
	return options, owner, a.p.archiveFault(ctx, resticErr, err)
}
