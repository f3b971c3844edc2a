// Package shard restricts a controller to the objects of some namespaces: those whose hash is in a range. The API
// server filters what a replica lists and watches, and a lease for each range lets one replica write.
package shard

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/sharding"
)

// A Range has the hashes of namespaces from First to Last, both included.
type Range struct{ First, Last uint64 }

// All has every hash.
var All = Range{0, math.MaxUint64}

// Parse returns a shard, such as 2/4: the third of four, because shards count from 0. The ranges are equal, unless
// bounds names the first hash of each shard but shard 0, separated by commas: the shards of uneven names.
func Parse(shard, bounds string) (Range, error) {
	var i, n int
	if _, err := fmt.Sscanf(shard+"\n", "%d/%d\n", &i, &n); err != nil || i < 0 || i >= n {
		return Range{}, fmt.Errorf("--shard is %q: it must be like 0/3, 1/3, or 2/3", shard)
	}
	firsts := Equal(n)
	if bounds != "" {
		words := strings.Split(bounds, ",")
		if len(words) != n-1 {
			return Range{}, fmt.Errorf("--bounds has %d hashes: %d shards need %d", len(words), n, n-1)
		}
		for at, word := range words {
			first, err := strconv.ParseUint(word, 0, 64)
			if err != nil || first <= firsts[at] {
				return Range{}, fmt.Errorf("--bounds has %q: it needs 64-bit hashes such as 0x8000000000000000, ascending", word)
			}
			firsts[at+1] = first
		}
	}
	r := Range{firsts[i], math.MaxUint64}
	if i+1 < n {
		r.Last = firsts[i+1] - 1
	}
	return r, nil
}

// Equal returns the first hash of each of n equal ranges.
func Equal(n int) []uint64 {
	firsts := make([]uint64, n)
	for i := range firsts {
		firsts[i] = uint64(i) * (math.MaxUint64/uint64(n) + 1)
	}
	return firsts
}

// Hash is the API server's own hash of a namespace: FNV-1a.
func Hash(namespace string) uint64 {
	hash, _ := strconv.ParseUint(sharding.HashField(namespace), 16, 64) // 16 hexadecimal digits
	return hash
}

// Has reports whether the shard has the objects of a namespace.
func (r Range) Has(namespace string) bool {
	hash := Hash(namespace)
	return r.First <= hash && hash <= r.Last
}

// overlaps reports whether two ranges have a hash in common.
func (r Range) overlaps(o Range) bool { return r.First <= o.Last && o.First <= r.Last }

// Selector is the value of the API's parameter shardSelector. By namespace, a MyWeb and its children are in one shard;
// by UID they would not be.
func (r Range) Selector() string {
	end := "0x10000000000000000" // one more than the largest hash
	if r.Last < math.MaxUint64 {
		end = fmt.Sprintf("0x%016x", r.Last+1)
	}
	return fmt.Sprintf("shardRange(object.metadata.namespace, '0x%016x', '%s')", r.First, end)
}

// leader is the name of the lease of an operator that serves all namespaces: that of chapters 03 and 04, too.
const leader = "myweb-operator"

// lease is the name of the range's lease. It has the range, so that another replica sees whether its own overlaps.
func (r Range) lease() string {
	if r == All {
		return leader
	}
	return fmt.Sprintf("%s-%016x-%016x", leader, r.First, r.Last)
}

// RangeOf returns the range of a lease, and false for the lease of another program.
func RangeOf(lease string) (r Range, ours bool) {
	if lease == leader {
		return All, true
	}
	_, err := fmt.Sscanf(lease+"\n", leader+"-%16x-%16x\n", &r.First, &r.Last)
	return r, err == nil && r.lease() == lease
}
