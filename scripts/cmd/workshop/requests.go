package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"example.com/operator-workshop/scripts/internal/cluster"
)

// auditEvent is the part of a line of the API server's audit log that the tables show.
type auditEvent struct {
	Stage, Verb, UserAgent   string
	RequestReceivedTimestamp time.Time
	User                     struct{ Username string }
	ObjectRef                struct{ Resource, Namespace, Name, Subresource, APIGroup string }
	ResponseStatus           struct{ Code int }
}

// A requestFilter chooses requests, never those about leases or about no object.
type requestFilter struct {
	by     []string // programs or users; empty means all
	writes bool     // only those that ask for a change
	since  time.Time
}

func requestsCommand() *cobra.Command {
	var filter requestFilter
	cmd := newCommand("requests",
		"Print who asked the local cluster's API server for what, leases left out", cobra.NoArgs,
		func(cmd *cobra.Command, w workshop, _ []string) error {
			printRequest(os.Stdout, []string{"TIME", "BY", "VERB", "CODE", "RESOURCE", "OBJECT"})
			return w.eachRequest(cmd.Context(), filter, false, func(e auditEvent) { printRequest(os.Stdout, e.columns()) })
		})
	bindRequestFilter(cmd, &filter)
	cmd.Flags().BoolVar(&filter.writes, "writes", false, "only requests that ask for a change")
	return cmd
}

func writesCommand() *cobra.Command {
	var filter requestFilter
	var duration time.Duration
	cmd := newCommand("writes", "Count the writes of the next seconds, leases left out", cobra.NoArgs,
		func(cmd *cobra.Command, w workshop, _ []string) error {
			filter.writes, filter.since = true, time.Now()
			ctx, cancel := context.WithTimeout(cmd.Context(), duration)
			defer cancel()
			count := 0
			err := w.eachRequest(ctx, filter, true, func(e auditEvent) {
				count++
				printRequest(os.Stdout, e.columns())
			})
			if err == nil && cmd.Context().Err() == nil {
				fmt.Printf("written in %s: %d\n", duration, count)
			}
			return err
		})
	bindRequestFilter(cmd, &filter)
	cmd.Flags().DurationVar(&duration, "for", 3*time.Second, "how long to count")
	return cmd
}

func bindRequestFilter(cmd *cobra.Command, filter *requestFilter) {
	cmd.Flags().StringSliceVar(&filter.by, "by", nil, "only requests of these programs (kubectl, myweb-operator) or users")
}

// eachRequest calls f for each chosen request in the audit log. With follow it waits for more until ctx ends.
func (w workshop) eachRequest(ctx context.Context, filter requestFilter, follow bool, f func(auditEvent)) error {
	c := w.cluster()
	if running, _ := c.Running(); running == 0 {
		return cluster.ErrNoCluster
	}
	return readAuditLog(ctx, c.AuditLog(), follow, func(line []byte) error {
		var e auditEvent
		if err := json.Unmarshal(line, &e); err != nil {
			return fmt.Errorf("read the audit log: %w in %s", err, line)
		}
		if filter.matches(e) {
			f(e)
		}
		return nil
	})
}

// auditPoll is how often a followed log is read: a file does not report that it grew.
const auditPoll = 100 * time.Millisecond

// readAuditLog calls f for each line of a log. With follow it waits for more until ctx ends, also in the file that
// replaces the log when the API server rotates it.
func readAuditLog(ctx context.Context, path string, follow bool, f func(line []byte) error) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	lines, begun := bufio.NewReader(file), []byte(nil)
	var next *os.File // the log that has replaced this one, which is read to its end first
	for {
		part, err := lines.ReadBytes('\n')
		begun = append(begun, part...) // a line may be written only in part yet
		switch {
		case err == nil:
			if err := f(begun); err != nil {
				return err
			}
			begun = nil
			continue
		case !errors.Is(err, io.EOF):
			return err
		case next != nil:
			_ = file.Close()
			file, lines, begun, next = next, bufio.NewReader(next), nil, nil
			continue
		case !follow:
			return nil
		}
		select {
		case <-ctx.Done():
			follow = false // what was written meanwhile is read
		case <-time.After(auditPoll):
		}
		if next, err = replaced(file, path); err != nil {
			return err
		}
	}
}

// replaced opens the file at path when it is another one than the open file, else it returns nil.
func replaced(open *os.File, path string) (*os.File, error) {
	was, err := open.Stat()
	is, missing := os.Stat(path)
	if err != nil || missing != nil || os.SameFile(was, is) {
		return nil, err // the log is still the same, or is being replaced just now
	}
	return os.Open(path)
}

// matches reports whether a request is chosen: a watch when it begins, every other one when it is answered.
func (f requestFilter) matches(e auditEvent) bool {
	stage := "ResponseComplete"
	if e.Verb == "watch" {
		stage = "ResponseStarted"
	}
	return e.Stage == stage && e.ObjectRef.Resource != "" && e.ObjectRef.Resource != "leases" &&
		(len(f.by) == 0 || slices.Contains(f.by, e.program()) || slices.Contains(f.by, e.User.Username)) &&
		(!f.writes || e.changes()) && !e.RequestReceivedTimestamp.Before(f.since)
}

// changes reports whether a request asks for a change. Questions about permissions are creates that store nothing.
func (e auditEvent) changes() bool {
	return slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, e.Verb) &&
		!slices.Contains([]string{"authorization.k8s.io", "authentication.k8s.io"}, e.ObjectRef.APIGroup) &&
		e.ObjectRef.Subresource != "token"
}

// program is the first word of the user agent: kubectl of "kubectl/v1.37.1 (linux/amd64) kubernetes/0123456".
func (e auditEvent) program() string {
	name, _, _ := strings.Cut(e.UserAgent, "/")
	return name
}

func (e auditEvent) columns() []string {
	resource := strings.TrimSuffix(e.ObjectRef.Resource+"/"+e.ObjectRef.Subresource, "/")
	object := strings.TrimPrefix(e.ObjectRef.Namespace+"/"+e.ObjectRef.Name, "/")
	return []string{e.RequestReceivedTimestamp.Local().Format(time.TimeOnly), e.program(), e.Verb,
		fmt.Sprint(e.ResponseStatus.Code), resource, object}
}

// requestWidths are the widths of the columns: with a blank between them, 100 in all. What is longer is cut.
var requestWidths = []int{8, 23, 6, 4, 22, 32}

func printRequest(w io.Writer, columns []string) {
	var line strings.Builder
	for i, text := range columns {
		if short := []rune(text); len(short) > requestWidths[i] {
			text = string(short[:requestWidths[i]-1]) + "…"
		}
		fmt.Fprintf(&line, "%-*s ", requestWidths[i], text)
	}
	fmt.Fprintln(w, strings.TrimRight(line.String(), " "))
}
