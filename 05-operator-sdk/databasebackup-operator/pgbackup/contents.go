package main

import (
	"context"
	"errors"
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
	text := e.text
	if object, comment := strings.CutPrefix(text, "COMMENT "); comment {
		_, text, _ = strings.Cut(object, " ") // the schema
	}
	return slices.ContainsFunc(kinds, func(kind string) bool { return strings.HasPrefix(text, kind+" ") })
}

// name is the entry without its owner, such as: event trigger - audit.
func (e entry) name() string {
	words := strings.Fields(e.text)
	return strings.ReplaceAll(strings.ToLower(strings.Join(words[:len(words)-1], " ")), " - ", " ")
}

// split returns the entries to restore, and their outcome, which names those that a restore leaves out. They act on the
// next statement or on another server, name a role, or are rows of materialized views that may come from a server that
// does not answer. A person adds them.
func split(entries []entry) (kept []entry, r *Restored) {
	r = &Restored{}
	out := []string{"EVENT TRIGGER", "SUBSCRIPTION", "SUBSCRIPTION TABLE", "PUBLICATION", "PUBLICATION TABLE",
		"PUBLICATION TABLES IN SCHEMA", "USER MAPPING", "POLICY"}
	if slices.ContainsFunc(entries, func(e entry) bool { return e.is("FOREIGN TABLE") }) {
		out = append(out, "MATERIALIZED VIEW DATA")
	}
	for _, e := range entries {
		switch {
		case !e.is(out...):
			kept = append(kept, e)
			if e.is("TABLE DATA") {
				r.Tables++
			}
		case !e.is("SUBSCRIPTION TABLE") && !strings.HasPrefix(e.text, "COMMENT"):
			r.LeftOut = append(r.LeftOut, e.name())
		}
	}
	return kept, r
}

// archive is a dump: in the repository, or a file.
type archive struct {
	*program
	snapshot *snapshot
	path     string
}

// read has pg_restore read the archive.
func (a archive) read(ctx context.Context, t tool) (err error) {
	t.name = "pg_restore"
	if a.snapshot == nil {
		t.args = append(t.args, a.path)
		err = a.run(ctx, t)
	} else {
		err = a.pipe(ctx, a.resticTool("dump", a.snapshot.ID, dumpFile), t)
	}
	failed, _ := errors.AsType[*toolError](err)
	switch {
	case failed == nil:
		return err
	case failed.name == "restic":
		return a.repositoryFault(ctx, err, ReasonRepositoryDamaged)
	}
	return because(err, ReasonArchiveUnreadable)
}

// restore restores entries into a database. They belong to the user who restores, because the roles of the dump may not
// exist here, and so grants are left out, too.
func (a archive) restore(ctx context.Context, entries []entry, env []string, database string) error {
	file, err := os.CreateTemp("", "pgbackup-list-")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(file.Name()) }()
	for _, e := range entries {
		_, writeErr := file.WriteString(e.line + "\n")
		err = errors.Join(err, writeErr)
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	return a.read(ctx, tool{env: env, args: []string{"--use-list=" + file.Name(), "--exit-on-error", "--no-owner", "--no-acl",
		"--no-tablespaces", "--no-password", databaseOption("dbname", database)}})
}

// contents returns the entries of the archive.
func (a archive) contents(ctx context.Context) ([]entry, error) {
	var out strings.Builder
	err := a.read(ctx, tool{args: []string{"--list", "--create"}, env: a.environment(), stdout: &out})
	return parseContents(out.String()), err
}

// databaseForm is the statement that creates the dumped database. Its group are the options.
var databaseForm = regexp.MustCompile(`(?s)\nCREATE DATABASE (?:"(?:[^"]|"")*"|[^" ]+) (.*?);\n`)

// databaseOptions returns the options of the statement that creates the dumped database.
func (a archive) databaseOptions(ctx context.Context) (string, error) {
	var out strings.Builder
	err := a.read(ctx, tool{args: []string{"--create", "--section=pre-data", "--file=-"}, env: a.environment(), stdout: &out})
	options := ""
	if match := databaseForm.FindStringSubmatch(out.String()); match != nil {
		options = match[1]
	}
	return options, err
}
