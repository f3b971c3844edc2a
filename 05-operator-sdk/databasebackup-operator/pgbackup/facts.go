package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
)

// factsFile is the file with the facts about a dump. A run writes it last: then the backup is complete.
type factsFile struct {
	Format int `json:"format"` // 1
	Dump
	Owner   string   `json:"owner"`
	Globals checksum `json:"globals"`
	collation
	// Tables are the rows of each table, by its name quoted as in SQL, in the snapshot that was dumped.
	Tables map[string]int64 `json:"tables"`
	// NotCounted are the other tables that were dumped, each with the reason why its rows were not counted.
	NotCounted   map[string]string `json:"notCounted,omitempty"`
	LargeObjects int64             `json:"largeObjects"`
	// Roles are the roles that own objects of the database, or have grants on them.
	Roles []string `json:"roles"`
	// Properties are the owner, grants, settings, connection limit and comment of the database.
	Properties []property `json:"properties"`
}

// collation is the encoding and the locale of a database.
type collation struct {
	Encoding string `json:"encoding"`
	Collate  string `json:"collate"`
	CType    string `json:"ctype"`
	Provider string `json:"localeProvider,omitempty"` // c, i or b, as in pg_database
	Locale   string `json:"locale,omitempty"`         // of the provider
}

// checksum identifies the content of a file.
type checksum struct {
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

func (s *factsFile) dump() checksum { return checksum{Size: s.Size, SHA256: s.SHA256} }

func (s *factsFile) facts() *Facts {
	f := &Facts{Dump: s.Dump, State: s.state(), Tables: len(s.Tables) + len(s.NotCounted)}
	for rows := range maps.Values(s.Tables) {
		f.Rows += rows
	}
	for i, table := range sortedKeys(s.NotCounted) {
		if i == notCountedLimit {
			f.NotCounted = append(f.NotCounted, fmt.Sprintf("%d other tables", len(s.NotCounted)-i))
			break
		}
		f.NotCounted = append(f.NotCounted, table+": "+s.NotCounted[table])
	}
	return f
}

// notCountedLimit is how many tables without a count a result names. The facts have all of them.
const notCountedLimit = 3

// state says how reliable a dump of the recorded size is.
func (s *factsFile) state() State {
	switch {
	case s.Failure != nil && faulty[s.Failure.Reason]:
		return StateBroken
	case s.Failure != nil:
		return StateUnverifiable
	case s.Verified.mode() == ModeNone:
		return StateUnverified
	}
	return StateGood
}

// readFacts returns nil if the file does not exist, or has the facts of another name or owner.
func (s *store) readFacts(path, name string) *factsFile {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	var found factsFile
	if json.Unmarshal(text, &found) != nil || found.Format != 1 || found.Name != name || found.Owner != s.owner {
		return nil
	}
	return &found
}

// prepareFacts writes the facts under a temporary name, durably. From then on the commit of any run can finish this
// run.
func (s *store) prepareFacts(facts *factsFile, run string) error {
	text, err := json.MarshalIndent(facts, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the facts: %w", err)
	}
	f, err := os.OpenFile(s.temporary(facts.Name, suffixFacts, run), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o660)
	if err != nil {
		return volumeFault("write the facts", err)
	}
	_, err = f.Write(append(text, '\n'))
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return volumeFault("write the facts", err)
	}
	return syncPath(s.dir)
}

// record replaces the facts of an existing backup.
func (s *store) record(facts *factsFile) error {
	run := newRun()
	err := s.prepareFacts(facts, run)
	if err == nil {
		err = s.commit(facts.Name, run)
	}
	if err != nil {
		_ = os.Remove(s.temporary(facts.Name, suffixFacts, run))
	}
	return err
}
