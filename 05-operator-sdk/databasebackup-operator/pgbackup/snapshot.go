package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
)

// snapshot is what is known of a database in the transaction that pg_dump joins.
type snapshot struct {
	ID            string   `json:"id"`
	Version       string   `json:"version"`
	VersionNumber int      `json:"versionNumber"`
	LargeObjects  int64    `json:"largeObjects"`
	Roles         []string `json:"roles"`
	Encoding      string   `json:"encoding"`
	// Row is that of pg_database. Its columns for locales differ between versions.
	Row struct {
		Collate   string  `json:"datcollate"`
		CType     string  `json:"datctype"`
		Provider  string  `json:"datlocprovider"` // from 15
		Locale    *string `json:"datlocale"`      // from 17
		ICULocale *string `json:"daticulocale"`   // 15 and 16
	} `json:"row"`
}

// Roles are those that objects of the database belong or are granted to. The one of the bootstrap superuser
// (10) is never recorded as a dependency.
const snapshotQuery = `
BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY;
SELECT json_build_object(
  'id', pg_export_snapshot(),
  'version', current_setting('server_version'),
  'versionNumber', current_setting('server_version_num')::int,
  'largeObjects', (SELECT count(*) FROM pg_largeobject_metadata),
  'encoding', pg_encoding_to_char(d.encoding),
  'roles', (SELECT json_agg(DISTINCT r.rolname) FROM pg_roles r WHERE r.oid = 10 OR r.oid IN (
     SELECT refobjid FROM pg_shdepend WHERE dbid = d.oid AND refclassid = 'pg_authid'::regclass)),
  'row', to_json(d))
FROM pg_database d WHERE datname = current_database();
`

// countQuery counts the rows of every table that pg_dump dumps: not those of the system, of temporary
// schemas, or of extensions, which come with CREATE EXTENSION. Each line is a JSON object, so that any name
// is possible. psql replaces no variables in what \gexec runs.
const countQuery = `
SELECT format('SELECT json_build_object(''table'', %L, ''rows'', count(*)) FROM ONLY %I.%I',
  quote_ident(n.nspname) || '.' || quote_ident(c.relname), n.nspname, c.relname)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'r' AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
  AND NOT EXISTS (SELECT FROM pg_depend d
    WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
ORDER BY 1 \gexec
`

// begin opens the transaction and exports its snapshot.
func (c *session) begin(ctx context.Context) (snapshot, error) {
	var found snapshot
	lines, err := c.ask(ctx, snapshotQuery)
	if err != nil {
		return found, classify(err, "export a snapshot", ReasonDumpFailed, workPatterns, c.names...)
	}
	if err := json.Unmarshal([]byte(strings.Join(lines, "\n")), &found); err != nil || found.ID == "" {
		return found, failf(ReasonDumpFailed, "export a snapshot: the server's answer cannot be read (%v)", err)
	}
	return found, nil
}

// count is the number of rows of each table, by its name quoted as in SQL.
func (c *session) count(ctx context.Context) (map[string]int64, error) {
	lines, err := c.ask(ctx, countQuery)
	if err != nil {
		return nil, err
	}
	return parseCounts(lines)
}

func parseCounts(lines []string) (map[string]int64, error) {
	counts := map[string]int64{}
	for _, line := range lines {
		var one struct {
			Table string `json:"table"`
			Rows  int64  `json:"rows"`
		}
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			return nil, fmt.Errorf("read the number of rows: %w", err)
		}
		counts[one.Table] = one.Rows
	}
	return counts, nil
}

// largeObjects is how many there are.
func (c *session) largeObjects(ctx context.Context) (int64, error) {
	lines, err := c.ask(ctx, "SELECT count(*) FROM pg_largeobject_metadata;")
	if err != nil {
		return 0, err
	}
	var n int64
	_, err = fmt.Sscan(strings.Join(lines, ""), &n)
	return n, err
}
