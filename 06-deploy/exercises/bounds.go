package exercises

import (
	"hash/fnv"
	"maps"
	"slices"
)

// Hash is the API server's hash of a namespace.
func Hash(namespace string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(namespace))
	return h.Sum64()
}

// Bounds returns the first hash of each shard but the first, ascending. webs has the number of MyWebs of each namespace.
// No shard should have more MyWebs than its part of all, and one namespace besides.
func Bounds(webs map[string]int, shards int) (bounds []uint64) {
	byHash, all := map[uint64]int{}, 0
	for namespace, n := range webs {
		byHash[Hash(namespace)] += n
		all += n
	}
	seen := 0
	for _, hash := range slices.Sorted(maps.Keys(byHash)) {
		if seen*shards >= all*(len(bounds)+1) {
			bounds = append(bounds, hash)
		}
		seen += byHash[hash]
	}
	return bounds
}
