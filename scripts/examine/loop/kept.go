package loop

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// A Judgement is the verdict of a check on a program whose loop is kept.
type Judgement struct {
	Exercise string `json:"exercise"`
	Passed   bool   `json:"passed"`
	// Check is the first failed check, or the exercise's own check.
	Check string `json:"check"`
	// Message describes the difference.
	Message string `json:"message"`
	// At is the number of the record at which the program differed, or 0.
	At int `json:"at,omitempty"`
	// Namespace is the check's own namespace.
	Namespace string `json:"namespace,omitempty"`
}

// Kept is the folder with the loop of the last check of an exercise. Its file ledger.jsonl has the records, in the
// order of their numbers; verdict.json has the Judgement.
type Kept string

// KeptOf returns the folder of an exercise.
func KeptOf(checks, exercise string) Kept { return Kept(filepath.Join(checks, exercise)) }

// Ledger returns the path of the file with the records.
func (k Kept) Ledger() string { return filepath.Join(string(k), "ledger.jsonl") }

func (k Kept) verdict() string { return filepath.Join(string(k), "verdict.json") }

// Write replaces the kept loop. While both files change, the folder has no verdict.
func (k Kept) Write(records []Record, j Judgement) error {
	if err := os.MkdirAll(string(k), 0o700); err != nil {
		return err
	}
	if err := os.Remove(k.verdict()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	var lines bytes.Buffer
	to := json.NewEncoder(&lines)
	for _, r := range records {
		if err := to.Encode(r); err != nil {
			return err
		}
	}
	verdict, err := json.Marshal(j)
	if err != nil {
		return err
	}
	err = os.WriteFile(k.Ledger(), lines.Bytes(), 0o600)
	if err == nil {
		err = os.WriteFile(k.verdict(), append(verdict, '\n'), 0o600)
	}
	return err
}

// Judgement returns the verdict of the check. The error is os.ErrNotExist when no loop was kept.
func (k Kept) Judgement() (j Judgement, err error) {
	verdict, err := os.ReadFile(k.verdict())
	if err == nil {
		err = json.Unmarshal(verdict, &j)
	}
	if err != nil {
		return j, fmt.Errorf("read %s: %w", k.verdict(), err)
	}
	return j, nil
}

// Read returns the kept loop. The error is os.ErrNotExist when no loop was kept.
func (k Kept) Read(ctx context.Context) (records []Record, j Judgement, err error) {
	if j, err = k.Judgement(); err == nil {
		records, err = All(ctx, k.Ledger())
	}
	return records, j, err
}

// All returns the records of a file, in the order of their numbers.
func All(ctx context.Context, path string) (records []Record, err error) {
	err = Read(ctx, path, false, func(r Record) error {
		records = append(records, r)
		return nil
	})
	slices.SortStableFunc(records, func(a, b Record) int { return cmp.Compare(a.N, b.N) })
	return records, err
}

// Essence returns the last records of a loop that fill at most n lines of a Printer: the requests for a change, each
// with the event before it. When no program requested a change, Essence returns events. Between them are the requests
// of a user.
func Essence(records []Record, n int) (some []Record) {
	events := map[Client]*Record{} // the newest event of a program that is not in a line yet
	var lines [][]Record
	changes := false
	for _, r := range records {
		switch {
		case r.IsHousekeeping():
		case r.Is == Event:
			events[r.By.key()] = &r
		case r.Changes():
			line := []Record{r}
			if e := events[r.By.key()]; e != nil {
				line = []Record{*e, r}
			}
			delete(events, r.By.key())
			lines, changes = append(lines, line), changes || r.By.Name != User
		}
	}
	if !changes {
		lines = nil
		for _, r := range records {
			if (r.Is == Event || r.Changes()) && !r.IsHousekeeping() {
				lines = append(lines, []Record{r})
			}
		}
	}
	return slices.Concat(lines[max(0, len(lines)-n):]...)
}
