package exercises

import (
	"hash/fnv"
	"math"
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
	for i := 1; i < shards; i++ {
		bounds = append(bounds, uint64(i)*(math.MaxUint64/uint64(shards)+1))
	}
	return bounds
}
