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

// restore has pg_restore read a dump, which names the encoding of its text. It ends at the first error. It does not use
// one transaction, because a server has too few locks to create thousands of tables in one. The caller drops a database
// that is not complete.
func (s server) restore(ctx context.Context, database string, dump io.Reader) error {
	return s.withEncoding("").run(ctx, tool{name: "pg_restore", stdin: dump, args: []string{
		"--no-password", "--exit-on-error", "--no-tablespaces", databaseOption("dbname", database)}})
}
