package main

import (
	"context"
	"io"
)

// createDatabase creates an empty database with the encoding and the locale of the dumped database, and with the owner
// and the tablespace of the database that it will replace.
func (s server) createDatabase(
	ctx context.Context, maintenance, name string, replaces targetState, facts *factsFile,
) error {
	args := []string{"--no-password", databaseOption("maintenance-db", maintenance), "--template=template0",
		"--encoding=" + facts.Encoding, "--lc-collate=" + facts.Collate, "--lc-ctype=" + facts.CType}
	switch {
	case facts.Locale == "":
	case facts.Provider == "i":
		args = append(args, "--locale-provider=icu", "--icu-locale="+facts.Locale)
	case facts.Provider == "b":
		args = append(args, "--locale-provider=builtin", "--builtin-locale="+facts.Locale)
	}
	if replaces.exists {
		args = append(args, "--owner="+replaces.owner)
	}
	if replaces.tablespace != "" {
		args = append(args, "--tablespace="+replaces.tablespace)
	}
	return s.run(ctx, tool{name: "createdb", args: append(args, "--", name)})
}

// restore has pg_restore read a dump, which names the encoding of its text. It ends at the first error.
func (s server) restore(ctx context.Context, database string, dump io.Reader, oneTransaction bool) error {
	args := []string{"--no-password", "--exit-on-error", "--no-tablespaces"}
	if oneTransaction {
		args = append(args, "--single-transaction")
	}
	in := s.withEncoding("")
	return in.run(ctx, tool{name: "pg_restore", args: append(args, databaseOption("dbname", database)), stdin: dump})
}
