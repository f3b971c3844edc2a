package exercises

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"testing"
)

// sets are namespaces as users name them, with the number of MyWebs of each.
func sets() map[string]map[string]int {
	numbered, long, few, big := map[string]int{}, map[string]int{}, map[string]int{}, map[string]int{}
	for n := 1; n <= 12; n++ {
		numbered[fmt.Sprintf("n%d", n)] = 10
	}
	for n := range 300 {
		long[fmt.Sprintf("customer-production-eu-west-team-%c%d", 'a'+n%26, n)] = 5
	}
	for _, name := range []string{"web", "shop", "blog", "docs"} {
		few[name] = 7
	}
	teams := make([]string, 100)
	for n := range teams {
		teams[n] = fmt.Sprintf("team-%d", n)
	}
	slices.SortFunc(teams, func(a, b string) int { return cmp.Compare(Hash(a), Hash(b)) })
	for n, team := range teams {
		if big[team] = 1; n < 20 { // the large ones are side by side
			big[team] = 100
		}
	}
	return map[string]map[string]int{"n1 to n12": numbered, "long names": long, "four names": few,
		"some large namespaces": big}
}

func TestBounds(t *testing.T) {
	for name, webs := range sets() {
		for _, shards := range []int{1, 2, 3, 4} {
			bounds := Bounds(webs, shards)
			if len(bounds) != shards-1 {
				t.Errorf("%s: %d bounds for %d shards: one less than shards is needed", name, len(bounds), shards)
				continue
			}
			for at := 1; at < len(bounds); at++ {
				if bounds[at] <= bounds[at-1] {
					t.Errorf("%s: the bounds of %d shards do not ascend: %#x", name, shards, bounds)
				}
			}
			all, largest, most := 0, 0, 0
			in := make([]int, shards)
			for namespace, n := range webs {
				shard := 0
				for _, first := range bounds {
					if Hash(namespace) >= first {
						shard++
					}
				}
				in[shard] += n
				all, largest = all+n, max(largest, n)
			}
			for _, n := range in {
				most = max(most, n)
			}
			if limit := all/shards + largest; most > limit {
				t.Errorf("%s: of %d MyWebs in %d shards one has %d, at most %d: %v", name, all, shards, most, limit, in)
			}
			if shards > 1 && in[0] == 0 {
				t.Errorf("%s: the first of %d shards is empty", name, shards)
			}
		}
	}
}

// The API server documents its hash as FNV-1a, of 64 bits.
func TestHash(t *testing.T) {
	if got := Hash(""); got != 14695981039346656037 || Hash("n1") > math.MaxUint64/2 {
		t.Errorf("the hash of no text is %d, and n1 has %#x", got, Hash("n1"))
	}
}
