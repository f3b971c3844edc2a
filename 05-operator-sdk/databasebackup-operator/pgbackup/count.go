package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Rows are counted only for verification, so a count that fails must not cost the backup. A planner may call functions
// of users (an index, a partial index, statistics), and a hot standby refuses unlogged tables; pg_dump has no error on
// either. TestCountingNeverCostsTheBackup and TestBackupOfAHotStandby demand this.

// table is a table that pg_dump dumps.
type table struct {
	OID  int64  `json:"oid"`
	Name string `json:"name"` // quoted as in SQL
}

// counts has the rows of each table that was counted, and the reason why another table was not counted, by the name of
// the table.
type counts struct {
	rows       map[string]int64
	notCounted map[string]string
}

// selectTables selects the tables that pg_dump dumps: no tables of the system, of temporary schemas, or of extensions,
// because CREATE EXTENSION creates those.
const selectTables = `
SELECT json_agg(json_build_object('oid', c.oid::int8, 'name', quote_ident(n.nspname) || '.' || quote_ident(c.relname)))
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'r' AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
  AND NOT EXISTS (SELECT FROM pg_depend d
    WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')`

// count counts the rows of tables in the transaction of the session. A table whose count fails does not end the
// transaction. The error means that the connection was lost: then the rest of the tables was not counted.
func (c *session) count(ctx context.Context, tables []table) (found counts, lost error) {
	found = counts{rows: map[string]int64{}, notCounted: map[string]string{}}
	// The wait for a lock is short, because another client may hold a table for hours.
	_, lost = c.ask(ctx, "\\set ON_ERROR_STOP off\nSET lock_timeout = '2s';")
	for _, t := range tables {
		rows, reason := int64(0), ""
		if lost == nil {
			rows, reason, lost = c.countTable(ctx, t)
		}
		if lost != nil {
			reason = lost.Error()
		}
		if reason != "" {
			found.notCounted[t.Name] = shorten(oneLine(reason), errorLineLimit)
		} else {
			found.rows[t.Name] = rows
		}
	}
	return found, lost
}

// countQuery counts one table. A table whose file differs from the file in the snapshot was truncated or rewritten
// since, and then PostgreSQL shows no old rows. The savepoint releases the lock. The statement goes through a variable
// of psql: after a failed \gexec, psql 17 has no LAST_ERROR_MESSAGE.
const countQuery = `
SAVEPOINT counting;
\unset count_rows
SELECT format('SELECT count(*), pg_relation_filenode(%%s) = %%s FROM ONLY %%I.%%I',
  c.oid, c.relfilenode, n.nspname, c.relname) AS count_rows
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = %d \gset
:count_rows;
\if :ERROR
\echo failed :LAST_ERROR_MESSAGE
\endif
ROLLBACK TO SAVEPOINT counting;
RELEASE SAVEPOINT counting;
`

// countTable counts one table, or returns the reason why the table cannot be counted. The error means that the
// connection is lost.
func (c *session) countTable(ctx context.Context, t table) (rows int64, reason string, err error) {
	lines, err := c.ask(ctx, fmt.Sprintf(countQuery, t.OID))
	if err != nil {
		return 0, "", err
	}
	answer := strings.Join(lines, " ")
	if message, failed := strings.CutPrefix(answer, "failed "); failed {
		if c.hide != nil {
			message = c.hide(message)
		}
		return 0, validText(message), nil
	}
	number, same := strings.CutSuffix(answer, "|t")
	if rows, err = strconv.ParseInt(number, 10, 64); err != nil || !same {
		return 0, "it was truncated, rewritten or dropped after the snapshot", nil
	}
	return rows, "", nil
}

// validText writes bytes that are not UTF-8 as \xNN: names and messages of a database in SQL_ASCII may have them.
func validText(text string) string { return escapeInvalid(text, `\x%02x`) }

// validJSON does the same inside JSON strings.
func validJSON(lines []string) []byte {
	return []byte(escapeInvalid(strings.Join(lines, "\n"), `\\x%02x`))
}

func escapeInvalid(text, format string) string {
	var valid strings.Builder
	for text != "" {
		r, size := utf8.DecodeRuneInString(text)
		if r == utf8.RuneError && size == 1 {
			_, _ = fmt.Fprintf(&valid, format, text[0])
		} else {
			valid.WriteString(text[:size])
		}
		text = text[size:]
	}
	return valid.String()
}
