// Package sequence has crash sequences: the writes of an undisturbed run after which an operator is killed.
package sequence

import (
	"fmt"
	"slices"
	"strings"

	"example.com/operator-workshop/scripts/examine/ledger"
	"example.com/operator-workshop/scripts/examine/proxy"
	"example.com/operator-workshop/scripts/examine/wire"
)

// A Key names a write in the same way in each run.
type Key struct {
	Verb, What, Name string
	N                int // number of this write among those of the same kind, from 1
}

func (k Key) String() string {
	text := strings.TrimSpace(k.Verb + " " + k.What + " " + k.Name)
	if k.N > 1 {
		text += fmt.Sprintf(" (%d)", k.N)
	}
	return text
}

// KeysOf are the keys of some writes, in their order.
func KeysOf(changes []ledger.Entry) (keys []Key) {
	seen := map[Key]int{}
	for _, e := range changes {
		k := Key{Verb: e.Verb, What: e.FullResource(), Name: e.Name}
		if k.Verb == wire.Create {
			k.Name = "" // a rule sees a create before its answer has the name
		}
		seen[k]++
		k.N = seen[k]
		keys = append(keys, k)
	}
	return keys
}

// most is the largest number of writes of which all combinations are tried.
const most = 6

// All are the sets of n writes after which the operator is killed: every combination while there are at most 64, else
// every single write and every pair. The short ones come first.
func All(n int) (all [][]int) {
	for set := 1; n <= most && set < 1<<n; set++ {
		var s []int
		for i := range n {
			if set>>i&1 == 1 {
				s = append(s, i)
			}
		}
		all = append(all, s)
	}
	for i := 0; n > most && i < n; i++ {
		all = append(all, []int{i})
		for j := i + 1; j < n; j++ {
			all = append(all, []int{i, j})
		}
	}
	slices.SortStableFunc(all, func(a, b []int) int { return len(a) - len(b) })
	return all
}

// KillAfter is a rule that calls kill when the nth matching write was committed: the proxy has the API server's answer,
// and drops the connection.
func KillAfter(n int, m ledger.Match, kill func()) proxy.Rule {
	m.Where = ledger.Entry.Committed
	return proxy.Rule{Name: "kill after a write", Match: m, Skip: n - 1, Times: 1, Moment: proxy.After,
		Do: proxy.Call(func(*proxy.Exchange) proxy.Action {
			kill()
			return proxy.Drop()
		})}
}

// Rule is KillAfter for the write that the key names.
func (k Key) Rule(m ledger.Match, kill func()) proxy.Rule {
	m.Verbs, m.Resources, m.Name = []string{k.Verb}, []string{k.What}, k.Name
	r := KillAfter(k.N, m, kill)
	r.Name = "kill after " + k.String()
	return r
}

// CreatedTwice is an object that some writes created more than once. Children of one name may be in several
// namespaces.
func CreatedTwice(writes []ledger.Entry) string {
	creations := map[string]int{}
	for _, e := range writes {
		what := e.FullResource() + " " + strings.TrimPrefix(e.Namespace+"/"+e.Name, "/")
		if slices.Contains(e.Served, 201) {
			if creations[what]++; creations[what] > 1 {
				return what
			}
		}
	}
	return ""
}
