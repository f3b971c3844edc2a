package crash

import (
	"testing"

	"example.com/operator-workshop/scripts/examine/ledger"
	"example.com/operator-workshop/scripts/examine/sequence"
	"example.com/operator-workshop/scripts/examine/wire"
)

func entry(verb, resource, subresource string) ledger.Entry {
	return ledger.Entry{Request: wire.Request{Verb: verb, Resource: resource, Subresource: subresource, Name: "web"}}
}

func TestSchedules(t *testing.T) {
	five := &path{name: "creation", keys: sequence.KeysOf([]ledger.Entry{
		entry("apply", "configmaps", ""), entry("apply", "deployments", ""), entry("apply", "services", ""),
		entry("update", "mywebs", "status"), entry("update", "mywebs", "status")})}
	checks := five.sequences()
	if len(checks) != 32 {
		t.Errorf("%d crash sequences of five writes, want 32", len(checks))
	}
	seen := map[string]bool{}
	for _, c := range checks {
		seen[c.ID] = true
	}
	if len(seen) != 32 || !seen["crash/creation-01010"] {
		t.Errorf("crash sequences: %v", seen)
	}
	if len(starts(five)) != 16 {
		t.Errorf("%d start states, want 16", len(starts(five)))
	}
	for range 3 { // eight writes make 256 subsets: the check tries single writes, pairs and the empty subset
		five.keys = append(five.keys, sequence.Key{Verb: "apply", What: "secrets", N: len(five.keys)})
	}
	if n := len(five.sequences()); n != 1+8+28 {
		t.Errorf("%d crash sequences of eight writes, want 37", n)
	}
}
