package main

import (
	"context"
	"fmt"
)

// compareRows counts what was restored and compares it with what was dumped.
func compareRows(ctx context.Context, s server, database string, facts *factsFile) (map[string]int64, error) {
	open, err := s.dial(ctx, database)
	if err != nil {
		return nil, err
	}
	defer func() { _ = open.close() }()
	if _, err := open.ask(ctx, sessionSettings); err != nil {
		return nil, failf(ReasonConnectionLost, "count the restored rows: %w", err)
	}
	tables, err := open.count(ctx)
	if err != nil {
		return nil, classify(err, "count the restored rows", ReasonConnectionLost, workPatterns)
	}
	large, err := open.largeObjects(ctx)
	if err != nil {
		return nil, classify(err, "count the restored large objects", ReasonConnectionLost, workPatterns)
	}
	if what := difference(facts, tables, large); what != "" {
		return tables, failf(ReasonRowsDiffer, "not what was dumped: %s", what)
	}
	return tables, nil
}

// difference describes the first thing, by name, that is not as it was dumped. It is empty if there is none.
func difference(facts *factsFile, tables map[string]int64, largeObjects int64) string {
	for _, table := range sortedKeys(facts.Tables) {
		rows, there := tables[table]
		switch {
		case !there:
			return fmt.Sprintf("table %s is missing", table)
		case rows != facts.Tables[table]:
			return fmt.Sprintf("table %s has %d rows, and %d were dumped", table, rows, facts.Tables[table])
		}
	}
	for _, table := range sortedKeys(tables) {
		if _, there := facts.Tables[table]; !there {
			return fmt.Sprintf("table %s was not dumped", table)
		}
	}
	if largeObjects != facts.LargeObjects {
		return fmt.Sprintf("%d large objects are there, and %d were dumped", largeObjects, facts.LargeObjects)
	}
	return ""
}
