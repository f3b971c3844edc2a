package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// entries reads lines such as "G 2026-05-03 02:00": state, time in UTC. The name is the time.
func entries(t *testing.T, lines ...string) (found []Entry) {
	t.Helper()
	states := map[string]State{"G": StateGood, "U": StateUnverified, "V": StateUnverifiable, "B": StateBroken,
		"M": StateMissing, "?": StateUnknown}
	for _, line := range lines {
		state, at, _ := strings.Cut(line, " ")
		when, err := time.Parse("2006-01-02 15:04", at)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, Entry{Name: line, Time: when, State: states[state]})
	}
	return found
}

type pruning struct {
	have   []string
	policy Policy
	zone   string   // empty for UTC
	remove []string // newest first
}

// The tests prune on May 10, 2026, at noon.
var prunings = map[string]pruning{
	"the last ones stay": {
		have:   []string{"G 2026-05-01 00:00", "G 2026-05-02 00:00", "G 2026-05-03 00:00"},
		policy: Policy{KeepLast: 2}, remove: []string{"G 2026-05-01 00:00"}},
	"the newest of each day stays, on days that have one": {
		have: []string{"G 2026-05-01 01:00", "G 2026-05-01 23:00", "G 2026-05-05 01:00",
			"G 2026-05-05 02:00", "G 2026-04-01 00:00"},
		policy: Policy{KeepDaily: 2}, remove: []string{"G 2026-05-05 01:00", "G 2026-05-01 01:00", "G 2026-04-01 00:00"}},
	"days begin in the zone": { // both are of May 2 in Berlin
		have:   []string{"G 2026-05-01 22:30", "G 2026-05-02 10:00"},
		policy: Policy{KeepDaily: 5}, zone: "Europe/Berlin", remove: []string{"G 2026-05-01 22:30"}},
	"the hour that comes twice is of one day": {
		have:   []string{"G 2026-10-25 00:30", "G 2026-10-25 01:30", "G 2026-10-25 22:59", "G 2026-10-25 23:01"},
		policy: Policy{KeepDaily: 9}, zone: "Europe/Berlin", remove: []string{"G 2026-10-25 01:30", "G 2026-10-25 00:30"}},
	"weeks begin on Monday": { // 2026-05-04 is one
		have:   []string{"G 2026-05-03 23:00", "G 2026-05-04 01:00", "G 2026-05-10 01:00"},
		policy: Policy{KeepWeekly: 5}, remove: []string{"G 2026-05-04 01:00"}},
	"a week over New Year is one": {
		have:   []string{"G 2026-12-31 00:00", "G 2027-01-01 00:00"},
		policy: Policy{KeepWeekly: 5}, remove: []string{"G 2026-12-31 00:00"}},
	"the newest of each month stays": {
		have:   []string{"G 2026-03-31 00:00", "G 2026-04-01 00:00", "G 2026-04-30 00:00", "G 2025-04-30 00:00"},
		policy: Policy{KeepMonthly: 3}, remove: []string{"G 2026-04-01 00:00"}},
	"what one rule keeps stays": {
		have: []string{"G 2026-05-03 01:00", "G 2026-05-03 02:00", "G 2026-05-02 01:00",
			"G 2026-04-02 01:00", "G 2026-04-01 01:00"},
		policy: Policy{KeepLast: 1, KeepDaily: 2, KeepMonthly: 2},
		remove: []string{"G 2026-05-03 01:00", "G 2026-04-01 01:00"}},
	"age goes before the rules": {
		have:   []string{"G 2026-05-09 00:00", "G 2026-05-01 00:00", "U 2026-05-01 00:00", "B 2026-05-01 00:00"},
		policy: Policy{KeepLast: 9, MaxAgeDays: 5},
		remove: []string{"U 2026-05-01 00:00", "G 2026-05-01 00:00", "B 2026-05-01 00:00"}},
	"the newest good one outlives its age": {
		have:   []string{"G 2026-01-01 00:00", "G 2026-01-02 00:00", "U 2026-05-09 00:00"},
		policy: Policy{KeepLast: 9, MaxAgeDays: 5}, remove: []string{"G 2026-01-01 00:00"}},
	"the newest good one stays without any rule": {
		have:   []string{"G 2026-01-01 00:00", "G 2026-01-02 00:00", "U 2026-05-09 00:00", "B 2026-05-09 01:00"},
		policy: Policy{}, remove: []string{"U 2026-05-09 00:00", "G 2026-01-01 00:00"}},
	"while none is good, the newest unverified stays": {
		have:   []string{"U 2026-01-01 00:00", "U 2026-01-02 00:00", "B 2026-01-03 00:00"},
		policy: Policy{}, remove: []string{"U 2026-01-01 00:00"}},
	"the newest stays even when it is broken and no rule speaks for it": {
		have:   []string{"B 2026-05-08 00:00", "B 2026-05-09 00:00", "M 2026-05-09 01:00"},
		policy: Policy{KeepDaily: 7}, remove: []string{"M 2026-05-09 01:00", "B 2026-05-08 00:00"}},
	"unverified and broken ones push out no good one": {
		have: []string{"G 2026-05-01 00:00", "G 2026-05-02 00:00", "U 2026-05-03 00:00", "U 2026-05-04 00:00",
			"U 2026-05-05 00:00", "B 2026-05-06 00:00", "B 2026-05-07 00:00", "B 2026-05-08 00:00"},
		policy: Policy{KeepLast: 2}, remove: []string{"B 2026-05-06 00:00", "U 2026-05-03 00:00"}},
	"unverifiable ones stay within the rules when a newer good one is there": {
		have:   []string{"V 2026-05-01 00:00", "V 2026-05-02 00:00", "G 2026-05-03 00:00"},
		policy: Policy{KeepLast: 2}},
	"unverifiable ones push out no good one, and go by the rules": {
		have: []string{"G 2026-05-01 00:00", "G 2026-05-02 00:00", "V 2026-05-03 00:00", "U 2026-05-04 00:00",
			"V 2026-05-05 00:00"},
		policy: Policy{KeepLast: 2}, remove: []string{"V 2026-05-03 00:00"}},
	"while none is good, the newest unverifiable one stays": {
		have:   []string{"V 2026-01-01 00:00", "V 2026-01-02 00:00", "M 2026-01-03 00:00"},
		policy: Policy{MaxAgeDays: 5}, remove: []string{"M 2026-01-03 00:00", "V 2026-01-01 00:00"}},
	"broken and missing ones go when a newer good one is there": {
		have:   []string{"B 2026-05-01 00:00", "M 2026-05-02 00:00", "G 2026-05-03 00:00", "B 2026-05-04 00:00"},
		policy: Policy{KeepLast: 7}, remove: []string{"M 2026-05-02 00:00", "B 2026-05-01 00:00"}},
	"unknown ones stay and count for nothing": {
		have:   []string{"? 2020-01-01 00:00", "? 2026-05-09 00:00", "G 2026-05-03 00:00", "G 2026-05-02 00:00"},
		policy: Policy{KeepLast: 1, MaxAgeDays: 9}, remove: []string{"G 2026-05-02 00:00"}},
	"a clock that was wrong costs nothing good": {
		have:   []string{"G 2031-01-01 00:00", "G 2026-05-03 00:00"},
		policy: Policy{KeepLast: 2, MaxAgeDays: 9}},
	"nothing is there": {policy: Policy{KeepLast: 1}},
}

func TestKeep(t *testing.T) {
	for name, test := range prunings {
		t.Run(name, func(t *testing.T) {
			zone, err := time.LoadLocation(test.zone)
			if err != nil {
				t.Fatal(err)
			}
			keep, remove := Keep(entries(t, test.have...), test.policy, time.Date(2026, 5, 10, 12, 0, 0, 0, time.UTC), zone)
			var names []string
			for _, e := range remove {
				names = append(names, e.Name)
			}
			if diff := cmp.Diff(test.remove, names); diff != "" {
				t.Errorf("removed (-want +got):\n%s", diff)
			}
			if len(keep)+len(remove) != len(test.have) {
				t.Errorf("%d kept and %d removed of %d", len(keep), len(remove), len(test.have))
			}
		})
	}
}

// For any backups and any policy, the newest good backup, the newest dump and all unknown backups stay. No backup is
// lost or listed twice, and a second pruning removes nothing.
func TestKeepAlways(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	now := time.Date(2026, 5, 10, 12, 0, 0, 0, time.UTC)
	states := []State{StateGood, StateUnverified, StateUnverifiable, StateBroken, StateMissing, StateUnknown}
	for round := range 5000 {
		var have []Entry
		newest, latest := Entry{}, Entry{}
		for i := range random.IntN(30) {
			e := Entry{Name: fmt.Sprint(i), Time: now.Add(-time.Duration(random.IntN(400*24*60)) * time.Minute),
				State: states[random.IntN(len(states))]}
			if e.State == StateGood && e.Time.After(newest.Time) {
				newest = e
			}
			if e.State != StateMissing && e.State != StateUnknown && e.Time.After(latest.Time) {
				latest = e
			}
			have = append(have, e)
		}
		policy := Policy{random.IntN(4), random.IntN(4), random.IntN(4), random.IntN(4), random.IntN(3) * 50}
		keep, remove := Keep(have, policy, now, time.UTC)
		if len(keep)+len(remove) != len(have) {
			t.Fatalf("round %d: %d kept and %d removed of %d", round, len(keep), len(remove), len(have))
		}
		if newest.Name != "" && !slices.Contains(keep, newest) {
			t.Fatalf("round %d: the newest good one was removed by %+v", round, policy)
		}
		if latest.Name != "" && !slices.ContainsFunc(keep, func(e Entry) bool { return e.Time.Equal(latest.Time) }) {
			t.Fatalf("round %d: the newest dump was removed by %+v", round, policy)
		}
		if slices.ContainsFunc(remove, func(e Entry) bool { return e.State == StateUnknown }) {
			t.Fatalf("round %d: an unknown one was removed", round)
		}
		if _, removed := Keep(keep, policy, now, time.UTC); len(removed) > 0 {
			t.Fatalf("round %d: a second pruning removes %v by %+v", round, removed, policy)
		}
	}
}
