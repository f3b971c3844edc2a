package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
)

// A restore runs code that the owners of tables wrote. So another process does it, the verb scratch, in a container
// that has neither the volume nor the credentials. The two share a directory with a unix socket. The body of the HTTP
// request is a trial, followed by the dump.

// trial has the data about a dump that the scratch process needs.
type trial struct {
	Facts *factsFile `json:"facts"`
	Query string     `json:"query,omitempty"`
}

// verdict is the response. Without a reason the dump has passed.
type verdict struct {
	Reason  Reason `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

// verdictReasons are the reasons that a verdict may have. Code in the dump may have written the verdict, so no verdict
// is evidence against a dump.
var verdictReasons = map[Reason]bool{
	ReasonScratchRestoreFailed: true, ReasonRowsDiffer: true, ReasonQueryFailed: true,
	ReasonQueryInvalid: true, ReasonToolMissing: true,
}

// verdictLimit is how much of a response is read, in bytes.
const verdictLimit = 64 << 10

func socketOf(dir string) string { return filepath.Join(dir, "socket") }

// checkRestore sends a dump to the scratch process, which restores it and compares the result with the facts.
func (p *program) checkRestore(ctx context.Context, s *store, facts *factsFile) error {
	dump, err := os.Open(s.path(facts.Name, suffixDump))
	if err != nil {
		return volumeFault("read the dump", err)
	}
	defer func() { _ = dump.Close() }()
	header, err := json.Marshal(trial{Facts: facts, Query: p.config.Query})
	if err != nil {
		return fmt.Errorf("encode the facts: %w", err)
	}
	body := io.MultiReader(bytes.NewReader(header), dump)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://scratch/", body)
	if err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{DialContext: p.dialScratch, DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return scratchLost(ctx, err)
	}
	defer func() { _ = response.Body.Close() }()
	var found verdict
	if err := json.NewDecoder(io.LimitReader(response.Body, verdictLimit)).Decode(&found); err != nil {
		return scratchLost(ctx, err)
	}
	if found == (verdict{}) {
		return nil
	}
	found.Message = p.target.hide(found.Message) // the scratch process does not know the secrets
	if !verdictReasons[found.Reason] {
		found.Reason = ReasonScratchFailed
	}
	return failf(found.Reason, "%s", found.Message)
}

// dialScratch connects to the scratch process, which may have to start first.
func (p *program) dialScratch(ctx context.Context, _, _ string) (conn net.Conn, err error) {
	_, failed := poll(ctx, min(p.config.Wait, scratchStart), func() (bool, error) {
		conn, err = (&net.Dialer{}).DialContext(ctx, "unix", socketOf(p.config.Scratch))
		starting := errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ECONNREFUSED)
		return !starting, nil
	})
	return conn, cmp.Or(failed, err)
}

// scratchLost is the error of a scratch process that does not respond. The error is not evidence against the dump.
func scratchLost(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return failf(ReasonScratchFailed, "no answer from the scratch container, which may lack memory: %w", err)
}
