package main

import (
	"context"
	"fmt"
	"slices"
)

// compareRows counts the restored rows and compares them with the recorded counts.
func compareRows(ctx context.Context, s server, database string, facts *factsFile) (map[string]int64, error) {
	open, err := s.dial(ctx, database)
	if err != nil {
		return nil, err
	}
	defer func() { _ = open.close() }()
	if _, err := open.ask(ctx, sessionSettings); err != nil {
		return nil, failf(ReasonConnectionLost, "count the restored rows: %w", err)
	}
	restored, err := open.begin(ctx)
	if err != nil {
		return nil, classify(err, "list the restored tables", ReasonConnectionLost, workPatterns)
	}
	have, err := open.count(ctx, restored.Tables)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, failf(ReasonConnectionLost, "count the restored rows: %w", err)
	}
	if what := difference(facts, have, restored.LargeObjects); what != "" {
		return have.rows, failf(ReasonRowsDiffer, "the rows differ from those of the dump: %s", what)
	}
	return have.rows, nil
}

// difference describes the first difference to the dumped database, in the order of names. It is empty without a
// difference. Rows are compared where both sides could be counted.
func difference(facts *factsFile, have counts, largeObjects int64) string {
	for _, table := range slices.Concat(sortedKeys(facts.Tables), sortedKeys(facts.NotCounted)) {
		dumped, known := facts.Tables[table]
		rows, counted := have.rows[table]
		_, there := have.notCounted[table]
		switch {
		case !counted && !there:
			return fmt.Sprintf("table %s is missing", table)
		case known && counted && rows != dumped:
			return fmt.Sprintf("table %s has %d rows, and %d were dumped", table, rows, dumped)
		}
	}
	for _, table := range sortedKeys(have.rows) {
		_, counted := facts.Tables[table]
		if _, dumped := facts.NotCounted[table]; !counted && !dumped {
			return fmt.Sprintf("table %s was not dumped", table)
		}
	}
	if largeObjects != facts.LargeObjects {
		return fmt.Sprintf("%d large objects are there, and %d were dumped", largeObjects, facts.LargeObjects)
	}
	return ""
}
