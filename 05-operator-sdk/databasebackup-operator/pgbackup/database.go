package main

import (
	"context"
	"io"
)

// createDatabase creates an empty database with an encoding and a locale. Without a tablespace it is in that of
// template0.
func (s server) createDatabase(ctx context.Context, name, tablespace string, like collation) error {
	args := []string{"--no-password", databaseOption("maintenance-db", maintenance), "--template=template0",
		"--encoding=" + like.Encoding, "--lc-collate=" + like.Collate, "--lc-ctype=" + like.CType}
	switch {
	case like.Locale == "":
	case like.Provider == "i":
		args = append(args, "--locale-provider=icu", "--icu-locale="+like.Locale)
	case like.Provider == "b":
		args = append(args, "--locale-provider=builtin", "--builtin-locale="+like.Locale)
	}
	if tablespace != "" {
		args = append(args, "--tablespace="+tablespace)
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
