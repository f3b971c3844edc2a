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

// A KeptVerdict is the verdict of a check on a program whose loop is kept.
type KeptVerdict struct {
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
// order of their numbers; verdict.json has the KeptVerdict.
type Kept string

// KeptOf returns the folder of an exercise.
func KeptOf(checks, exercise string) Kept { return Kept(filepath.Join(checks, exercise)) }

// Ledger returns the path of the file with the records.
func (k Kept) Ledger() string { return filepath.Join(string(k), "ledger.jsonl") }

func (k Kept) verdictFile() string { return filepath.Join(string(k), "verdict.json") }

// Write replaces the kept loop. While both files change, the folder has no verdict.
func (k Kept) Write(records []Record, j KeptVerdict) error {
	if err := os.MkdirAll(string(k), 0o700); err != nil {
		return err
	}
	if err := os.Remove(k.verdictFile()); err != nil && !errors.Is(err, os.ErrNotExist) {
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
	if err := os.WriteFile(k.Ledger(), lines.Bytes(), 0o600); err != nil {
		return err
	}
	whole := k.verdictFile() + ".new" // no reader sees a part of it
	if err := os.WriteFile(whole, append(verdict, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(whole, k.verdictFile())
}

// Verdict returns the verdict of the check. The error is os.ErrNotExist when no loop was kept.
func (k Kept) Verdict() (j KeptVerdict, err error) {
	verdict, err := os.ReadFile(k.verdictFile())
	if err == nil {
		err = json.Unmarshal(verdict, &j)
	}
	if err != nil {
		return j, fmt.Errorf("read %s: %w", k.verdictFile(), err)
	}
	return j, nil
}

// Read returns the kept loop. The error is os.ErrNotExist when no loop was kept.
func (k Kept) Read(ctx context.Context) (records []Record, j KeptVerdict, err error) {
	if j, err = k.Verdict(); err == nil {
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

// mostEvents is how many events Essence returns at most.
const mostEvents = 2

// Essence returns what shows best that a program reacts: the event of the newest act that the program answered, and the
// first write that followed. Other events and writes of the same time may have other causes. An act is the change of a
// user, or the end of an object that the program creates again. When no act was answered, Essence returns the last events.
func Essence(records []Record) (some []Record) {
	for at, r := range slices.Backward(records) {
		event, rest := eventOf(r, records[at:])
		answers := func(a Record) bool {
			return a.Changes() && a.Code/100 == 2 && a.Effect != "same" && a.By.key() == event.By.key() &&
				(r.Is == Request || a.Verb == "create" && a.isOf(r))
		}
		if n := slices.IndexFunc(rest, answers); n >= 0 {
			return []Record{event, rest[n]}
		}
	}
	for _, r := range slices.Backward(records) {
		if r.Is == Event && !r.IsHousekeeping() && len(some) < mostEvents {
			some = append(some, r)
		}
	}
	slices.Reverse(some)
	return some
}

// eventOf returns the event of an act, and the records after it. The first of the records is the act.
func eventOf(act Record, records []Record) (event Record, rest []Record) {
	isEvent := func(r Record) bool {
		return r.Is == Event && r.isOf(act) && (act.Verb != "delete" || r.Type == "DELETED") &&
			(act.ResourceVersion == "" || r.ResourceVersion == act.ResourceVersion)
	}
	if act.Type != "DELETED" && (act.By.Name != User || !act.Changes()) {
		return Record{}, nil
	}
	if n := slices.IndexFunc(records, isEvent); n >= 0 {
		return records[n], records[n+1:]
	}
	return Record{}, nil
}

// isOf reports whether two records are about the same object.
func (r Record) isOf(other Record) bool {
	return r.Resource == other.Resource && r.Which() == other.Which()
}
