package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// serveScratch is the verb scratch. It restores each dump that it receives, until it is stopped.
func (p *program) serveScratch(ctx context.Context) error {
	left, _ := filepath.Glob(filepath.Join(p.config.Scratch, scratchPrefix+"*"))
	for _, path := range append(left, socketOf(p.config.Scratch)) { // of a process that was killed
		if err := os.RemoveAll(path); err != nil {
			return failf(ReasonScratchFailed, "remove what a killed process left: %w", err)
		}
	}
	listener, err := net.Listen("unix", socketOf(p.config.Scratch))
	if err != nil {
		return failf(ReasonScratchFailed, "listen in BACKUP_SCRATCH: %w", err)
	}
	server := &http.Server{Handler: http.HandlerFunc(p.answer), ReadHeaderTimeout: time.Minute,
		BaseContext: func(net.Listener) context.Context { return ctx }}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return server.Shutdown(context.WithoutCancel(ctx))
	}
}

// answer restores the dump in a request, and responds with the verdict.
func (p *program) answer(w http.ResponseWriter, r *http.Request) {
	var found verdict
	if err := p.try(r.Context(), r.Body); err != nil {
		found = verdict{reasonOf(err), p.line(err)}
	}
	_, _ = io.Copy(io.Discard, r.Body) // a client that still writes would miss the response
	p.log.Info("Restored dump", "reason", found.Reason, "message", found.Message)
	_ = json.NewEncoder(w).Encode(found)
}

// try restores a dump into a scratch server, compares the result with the facts, and runs the query.
func (p *program) try(ctx context.Context, body io.Reader) (err error) {
	var asked trial
	decoder := json.NewDecoder(body)
	if err := decoder.Decode(&asked); err != nil || asked.Facts == nil {
		return failf(ReasonScratchFailed, "read the request: %w", err)
	}
	server, err := p.startScratch(ctx)
	if server != nil {
		defer func() { err = errors.Join(err, server.remove()) }()
	}
	if err != nil {
		return err
	}
	if err := server.makeDatabase(ctx, asked.Facts); err != nil {
		return err
	}
	if _, err := server.createRoles(ctx, scratchDatabase, asked.Facts.Encoding, asked.Facts.Roles); err != nil {
		return scratchFault("create the roles", err)
	}
	err = server.restore(ctx, scratchDatabase, io.MultiReader(decoder.Buffered(), body))
	if err != nil {
		return classify(err, "the dump can be read, but the scratch server refused a part of it",
			ReasonScratchRestoreFailed, nil)
	}
	if _, err := compareRows(ctx, server.server, scratchDatabase, asked.Facts); err != nil {
		return err
	}
	if asked.Query == "" {
		return nil
	}
	return server.ask(ctx, asked.Query, asked.Facts.Encoding)
}

// scratchFault is the error of a step before the restore begins. The error is not evidence against the dump.
func scratchFault(doing string, err error) error {
	if _, ok := errors.AsType[*toolError](err); !ok {
		return err // no program, or stopped
	}
	return failf(ReasonScratchFailed, "%s: %w", doing, err)
}

// ask runs the query of the settings as a user who can read everything and change nothing.
func (s *scratch) ask(ctx context.Context, sql, encoding string) error {
	_, err := s.query(ctx, maintenance, "CREATE ROLE "+scratchReader+" LOGIN BYPASSRLS IN ROLE pg_read_all_data;")
	if err != nil {
		return scratchFault("make the user of the query", err)
	}
	reader := s.withEncoding(textEncoding(encoding))
	reader.environ = append(reader.environ, "PGUSER="+scratchReader,
		"PGOPTIONS=-c default_transaction_read_only=on")
	var answer strings.Builder
	err = reader.run(ctx, tool{name: "psql", stdout: &answer,
		args: append(psqlArgs(scratchDatabase), "--field-separator=\t", "--command="+sql)})
	if err != nil {
		return classify(err, "run "+querySetting, ReasonQueryInvalid, nil)
	}
	return checkAnswer(answer.String())
}

// querySetting names the query as a DatabaseBackup and the program name it.
const querySetting = "verification.query (BACKUP_QUERY)"

// checkAnswer accepts an answer of at least one row whose first value is neither false, NULL nor 0. So a query may be a
// condition, a count, or rows that must exist.
func checkAnswer(answer string) error {
	row, _, there := strings.Cut(answer, "\n")
	if !there {
		return failf(ReasonQueryFailed, querySetting+" returned no row")
	}
	switch first, _, _ := strings.Cut(row, "\t"); first {
	case "", "f", "false", "0":
		return failf(ReasonQueryFailed, querySetting+" returned %q", first)
	}
	return nil
}
