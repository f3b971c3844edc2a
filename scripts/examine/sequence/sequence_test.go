package sequence

import (
	"slices"
	"testing"

	"example.com/operator-workshop/scripts/examine/ledger"
	"example.com/operator-workshop/scripts/examine/wire"
)

func TestSequences(t *testing.T) {
	for n, want := range map[int]int{1: 1, 3: 7, 6: 63, 7: 28, 10: 55} {
		all := All(n)
		if len(all) != want {
			t.Errorf("%d writes: %d sequences, want %d", n, len(all), want)
		}
		for i := range n {
			if !slices.Equal(all[i], []int{i}) {
				t.Errorf("%d writes: sequence %d is %v: the single ones come first", n, i, all[i])
			}
		}
	}
}

func TestCreatedTwice(t *testing.T) {
	created := func(namespace string) ledger.Entry {
		return ledger.Entry{Served: []int{201}, Request: wire.Request{
			Version: "v1", Resource: "resourcequotas", Namespace: namespace, Name: "team"}}
	}
	if got := CreatedTwice([]ledger.Entry{created("a"), created("b")}); got != "" {
		t.Errorf("%q is in two namespaces", got)
	}
	if got := CreatedTwice([]ledger.Entry{created("a"), created("b"), created("a")}); got != "resourcequotas a/team" {
		t.Errorf("%q", got)
	}
}
