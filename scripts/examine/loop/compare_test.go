package loop

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTheFirstDifferenceOfTwoRuns has runs of a check in which a user creates an object, and then deletes its child.
func TestTheFirstDifferenceOfTwoRuns(t *testing.T) {
	owned := Shown{Facts: []string{"generation 1", "owner: Web w (controller)"}}
	user := func(verb string) Record {
		return Record{Is: Request, By: Client{Name: User}, Verb: verb, Resource: "webs", Name: "w", Code: 200, Effect: "moved"}
	}
	event := func(kind string) Record {
		return Record{Is: Event, Kind: "Child", Resource: "children", Name: "c", Type: kind, Shown: owned}
	}
	write := func(verb string, code int, effect string, shown Shown) Record {
		return Record{Is: Request, Verb: verb, Resource: "children", Name: "c", Code: code, Effect: effect, Shown: shown}
	}
	read := Record{Is: Request, Verb: "get", Resource: "children", Name: "c", Code: 404}
	created, orphan := write("create", 201, "moved", owned), write("create", 201, "moved", Shown{Facts: []string{NoOwner}})
	update := write("update", 200, "moved", owned)
	solution := []Record{user("create"), event("ADDED"), created, event("MODIFIED"), update, update,
		user("delete"), event("DELETED"), read, write("apply", 201, "moved", owned)}
	endless := []Record{user("create"), created, event("ADDED")}
	for range 12 {
		endless = append(endless, update)
	}
	for name, test := range map[string]struct {
		run            []Record
		at             int
		act            string
		extra, missing int
	}{
		"another order, fewer updates, and reads": {[]Record{user("create"), created, read, event("ADDED"), update,
			write("update", 409, "", Shown{}), user("delete"), created, event("DELETED")}, 0, "delete webs w 200 moved", 0, 0},
		"the same until a failure": {solution, 8, "delete webs w 200 moved", 0, 0},
		"no watch":                 {[]Record{user("create"), event("ADDED"), created, update, user("delete")}, 5, "delete webs w 200 moved", 0, 8},
		"an event without a write": {[]Record{user("create"), event("ADDED"), created, update, user("delete"), event("DELETED")}, 6,
			"delete webs w 200 moved", 0, 10},
		"no owner":         {[]Record{user("create"), event("ADDED"), orphan, update, user("delete")}, 5, "create webs w 200 moved", 3, 3},
		"without end":      {endless, 6, "create webs w 200 moved", 6, 0},
		"an act too few":   {[]Record{user("create"), event("ADDED"), created, update}, 4, "create webs w 200 moved", 0, 0},
		"a refused write":  {[]Record{user("create"), event("ADDED"), write("create", 403, "", Shown{})}, 3, "create webs w 200 moved", 3, 3},
		"nothing happened": {nil, 0, "", 0, 0},
		"before any act":   {[]Record{created, user("create")}, 0, "", 1, 0},
		"a write of nothing": {[]Record{user("create"), event("ADDED"), created, update, write("update", 200, "same", owned)}, 5,
			"create webs w 200 moved", 5, 0},
		"a write of nothing in a run that passed": {[]Record{user("create"), event("ADDED"), created, update,
			write("update", 200, "same", owned)}, 0, "create webs w 200 moved", 0, 0},
		"a refused write that is repeated": {[]Record{user("create"), write("create", 422, "", Shown{}), created, update}, 4,
			"create webs w 200 moved", 0, 0},
		"a child that comes back, but once before": {[]Record{user("create"), created, created, update, user("delete"), event("DELETED"),
			event("ADDED")}, 6, "delete webs w 200 moved", 0, 10},
	} {
		number := func(some []Record) []Record {
			some = append([]Record{}, some...)
			for i := range some {
				some[i].N = i + 1
			}
			return some
		}
		got := Compare(number(test.run), number(solution), test.at)
		want := []any{test.act, test.extra, test.missing}
		if diff := cmp.Diff(want, []any{got.Act, got.Extra, got.Missing}); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if test.act != "" && (got.Run[0].Text() != test.act || got.Other[0].Text() != test.act) {
			t.Errorf("%s: the runs begin at %s and %s", name, got.Run[0].Text(), got.Other[0].Text())
		}
	}
}

// TestTheSolutionsRunHasNeedlessWrites: the first difference is the repeated write, and neither a write that changed
// nothing nor a refused write. The user acts on two objects, and the reaction to the first act comes late.
func TestTheSolutionsRunHasNeedlessWrites(t *testing.T) {
	user := func(name string) Record {
		return Record{Is: Request, By: Client{Name: User}, Verb: "create", Resource: "webs", Name: name, Code: 201, Effect: "moved"}
	}
	write := func(verb, name string, code int, effect string) Record {
		return Record{Is: Request, Verb: verb, Resource: "children", Name: name, Code: code, Effect: effect}
	}
	solution := []Record{user("a"), write("create", "a", 201, "moved"), write("update", "a", 200, "same"), user("b"),
		write("create", "b", 500, ""), write("update", "b", 422, ""), write("create", "b", 201, "moved")}
	run := []Record{user("a"), user("b"), write("create", "a", 201, "moved"), write("create", "b", 500, "")}
	for _, records := range [][]Record{solution, run} {
		for i := range records {
			records[i].N = i + 1
		}
	}
	if got := Compare(run, solution, 4); got.Extra != 0 || got.Missing != 7 || got.Act != run[0].Text() {
		t.Errorf("after %q: %d and %d", got.Act, got.Extra, got.Missing)
	}
}
