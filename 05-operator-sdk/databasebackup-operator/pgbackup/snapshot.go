package main

import (
	"context"
	"encoding/json"
)

// snapshot has the properties of a database in one transaction, which pg_dump joins.
type snapshot struct {
	ID            string     `json:"id"`
	Version       string     `json:"version"`
	VersionNumber int        `json:"versionNumber"`
	LargeObjects  int64      `json:"largeObjects"`
	Roles         []string   `json:"roles"`
	Encoding      string     `json:"encoding"`
	Tables        []table    `json:"tables"`
	Properties    []property `json:"properties"`
	// Row is the row of the database in pg_database. Its columns for locales differ between versions.
	Row struct {
		IsTemplate bool    `json:"datistemplate"`
		Collate    string  `json:"datcollate"`
		CType      string  `json:"datctype"`
		Provider   string  `json:"datlocprovider"` // from 15
		Locale     *string `json:"datlocale"`      // from 17
		ICULocale  *string `json:"daticulocale"`   // 15 and 16
	} `json:"row"`
}

func (s snapshot) collation() collation {
	c := collation{Encoding: s.Encoding, Collate: s.Row.Collate, CType: s.Row.CType, Provider: s.Row.Provider}
	for _, locale := range []*string{s.Row.ICULocale, s.Row.Locale} {
		if locale != nil {
			c.Locale = *locale
		}
	}
	return c
}

// The roles own objects of the database, or have grants on them. PostgreSQL never records the bootstrap superuser (10)
// as a dependency.
const snapshotQuery = `
BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY;
SELECT json_build_object(
  'id', pg_export_snapshot(),
  'version', current_setting('server_version'),
  'versionNumber', current_setting('server_version_num')::int,
  'largeObjects', (SELECT count(*) FROM pg_largeobject_metadata),
  'encoding', pg_encoding_to_char(d.encoding),
  'tables', (` + selectTables + `),
  'properties', (` + selectProperties + `),
  'roles', (SELECT json_agg(DISTINCT r.rolname) FROM pg_roles r WHERE r.oid = 10 OR r.oid IN (
     SELECT refobjid FROM pg_shdepend WHERE dbid = d.oid AND refclassid = 'pg_authid'::regclass)),
  'row', to_json(d))
FROM pg_database d WHERE datname = current_database();
`

// begin opens the transaction and exports its snapshot.
func (c *session) begin(ctx context.Context) (snapshot, error) {
	var found snapshot
	lines, err := c.ask(ctx, snapshotQuery)
	if err != nil {
		return found, err
	}
	if err := json.Unmarshal(validJSON(lines), &found); err != nil || found.ID == "" {
		return found, failf(ReasonDumpFailed, "export a snapshot: the server's answer cannot be read (%v)", err)
	}
	return found, nil
}
