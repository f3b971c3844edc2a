package main

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// propertyEntry matches the entries of a table of contents that are about the database itself.
var propertyEntry = regexp.MustCompile(
	`^[0-9]+; [0-9]+ [0-9]+ (DATABASE|DATABASE PROPERTIES|(ACL|COMMENT|SECURITY LABEL) - DATABASE) `)

// propertyStatements are the beginnings of the statements that restore properties. CREATE DATABASE is not among them:
// the database exists already.
var propertyStatements = []string{"ALTER DATABASE ", "ALTER ROLE ", "COMMENT ON DATABASE ", "GRANT ", "REVOKE ",
	"SECURITY LABEL ", "SET SESSION AUTHORIZATION ", "RESET SESSION AUTHORIZATION", "SET standard_conforming_strings "}

// archived are the statements of an archive that give a database its owner, grants, settings, connection limit and
// comment.
type archived struct {
	encoding   string
	statements []statement
}

// statement is a statement of an archive, in the archive's encoding. The name of the database that was dumped is left
// out between before and after.
type statement struct {
	before, after string
	named         bool
}

// readProperties has pg_restore print the statements that --create would run.
func (p *program) readProperties(ctx context.Context, dump string) (archived, error) {
	const doing = "read the properties of the database from the backup"
	local := server{environ: plainEnvironment(p.config.environ), tools: p.config.Tools}
	var list, script bytes.Buffer
	err := local.run(ctx, tool{name: "pg_restore", args: []string{"--create", "--list", dump}, stdout: &list})
	if err != nil {
		return archived{}, classify(err, doing, ReasonArchiveUnreadable, nil)
	}
	var entries strings.Builder
	for line := range strings.Lines(list.String()) {
		if propertyEntry.MatchString(line) {
			entries.WriteString(line)
		}
	}
	err = local.run(ctx, tool{name: "pg_restore", stdin: strings.NewReader(entries.String()), stdout: &script,
		args: []string{"--create", "--no-tablespaces", "--use-list=/dev/stdin", "--file=-", dump}})
	if err != nil {
		return archived{}, classify(err, doing, ReasonArchiveUnreadable, nil)
	}
	return parseProperties(script.String()), nil
}

// parseProperties reads a script of pg_restore.
func parseProperties(script string) archived {
	found := archived{encoding: "UTF8"}
	for script = skipRemarks(script); script != ""; script = skipRemarks(script) {
		s, end := cutStatement(script)
		script = script[end:]
		if encoding, ok := strings.CutPrefix(s.before, "SET client_encoding = '"); ok {
			found.encoding = strings.TrimSuffix(encoding, "'")
		}
		wanted := func(begin string) bool { return strings.HasPrefix(s.before, begin) }
		if slices.ContainsFunc(propertyStatements, wanted) {
			found.statements = append(found.statements, s)
		}
	}
	return found
}

// skipRemarks skips empty lines, comments and psql's own commands before a statement.
func skipRemarks(script string) string {
	for {
		script = strings.TrimLeft(script, " \n\r\t")
		if !strings.HasPrefix(script, "--") && !strings.HasPrefix(script, `\`) {
			return script
		}
		_, script, _ = strings.Cut(script, "\n")
	}
}

// databaseWord comes before the name of a database. pg_restore writes keywords in upper case, and names in upper case
// only in quotes.
const databaseWord = "DATABASE "

// cutStatement finds the first statement of a script, without its semicolon. end is where the next statement begins.
func cutStatement(script string) (found statement, end int) {
	begin := 0 // of the text that is not in found yet
	for end < len(script) && script[end] != ';' {
		switch {
		case script[end] == '\'' || script[end] == '"':
			end += quotedLength(script[end:])
		case !found.named && strings.HasPrefix(script[end:], databaseWord):
			end += len(databaseWord)
			found.before, found.named = script[:end], true
			if strings.HasPrefix(script[end:], `"`) {
				end += quotedLength(script[end:])
			} else {
				end += max(strings.IndexAny(script[end:], " ;"), 0)
			}
			begin = end
		default:
			end++
		}
	}
	rest := script[begin:end]
	if found.named {
		found.after = rest
	} else {
		found.before = rest
	}
	return found, min(end+1, len(script))
}

// quotedLength is the length of the quoted constant or name with which a text begins. A doubled quote does not end it.
func quotedLength(text string) int {
	for i := 1; i < len(text); i++ {
		if text[i] != text[0] {
			continue
		}
		if i+1 == len(text) || text[i+1] != text[0] {
			return i + 1
		}
		i++
	}
	return len(text)
}

// restoreProperties gives a database the properties of an archive. It works in that database, because the text of its
// properties has its encoding. It returns the statements that the server refused, such as for a missing role.
func (p *program) restoreProperties(ctx context.Context, a archived, database string) (refused []string, err error) {
	out, err := p.target.query(ctx, database, a.sql(database))
	if err != nil {
		return nil, classify(err, "restore the properties of the database", ReasonRestoreFailed, workPatterns)
	}
	for line := range strings.Lines(out) {
		number, message, _ := strings.Cut(strings.TrimSpace(line), " ")
		i, err := strconv.Atoi(number)
		if err != nil || i < 0 || i >= len(a.statements) {
			continue // a message of several lines
		}
		refused = append(refused, fmt.Sprintf("%s (%s)", a.statements[i].shown(p.config.Database),
			strings.ToValidUTF8(message, "?")))
	}
	return refused, nil
}

// sql runs the statements for a database and prints the numbers of the statements that fail, with the reason. psql gets
// the statements only as hexadecimal digits, because it would run psql commands in them. Public grants come first:
// pg_dump writes only the difference to the grants of a new database.
func (a archived) sql(database string) string {
	const failed = "pgbackup.failed" // a setting of the session
	var all strings.Builder
	all.WriteString("SELECT format('GRANT CONNECT, TEMPORARY ON DATABASE %I TO PUBLIC'," +
		literal(database) + ") \\gexec\n")
	for i, s := range a.statements {
		decoded := func(text string) string {
			return "convert_from(decode('" + hex.EncodeToString([]byte(text)) + "', 'hex')," + literal(a.encoding) + ")"
		}
		execute := decoded(s.before)
		if s.named {
			execute += " || quote_ident(" + literal(database) + ") || " + decoded(s.after)
		}
		all.WriteString("DO" + literal(fmt.Sprintf("BEGIN EXECUTE %[1]s; EXCEPTION WHEN OTHERS THEN PERFORM "+
			"set_config('%[2]s', concat(current_setting('%[2]s', true), '%[3]d ', SQLERRM, chr(10)), false); END",
			execute, failed, i)) + ";\n")
	}
	all.WriteString("SELECT current_setting('" + failed + "', true);\n")
	return all.String()
}

// shown is the statement in a warning: without the value of a setting or a comment.
func (s statement) shown(database string) string {
	text := s.before
	if s.named {
		text += `"` + database + `"` + s.after
	}
	text, _, _ = strings.Cut(text, "'")
	for _, word := range []string{" IS ", " TO "} {
		text = strings.TrimSuffix(text, word)
	}
	return oneLine(strings.ToValidUTF8(text, "?"))
}
