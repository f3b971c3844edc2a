// Command even prints how evenly the API server's hash divides names into four shards of equal ranges.
package main

import (
	"fmt"
	"math/rand/v2"

	"example.com/operator-workshop/06-deploy/scale/shard"
)

const names, shards = 1000, 4

func main() {
	random := rand.New(rand.NewPCG(1, 2)) // the same names in each run
	uid := func(int) string {
		return fmt.Sprintf("%08x-%04x-4%03x-a%03x-%012x", random.Uint32(), random.IntN(1<<16), random.IntN(1<<12),
			random.IntN(1<<12), random.Int64N(1<<48))
	}
	for _, set := range []struct {
		title string
		name  func(n int) string
	}{
		{"n1, n2, … n1000", func(n int) string { return fmt.Sprintf("n%d", n+1) }},
		{"team-a, team-b, … team-zz", func(n int) string { return fmt.Sprintf("team-%s", letters(n)) }},
		{"a long common prefix", func(n int) string { return fmt.Sprintf("customer-production-eu-west-%03d", n) }},
		{"a long common suffix", func(n int) string { return fmt.Sprintf("%03d-customer-production-eu-west", n) }},
		{"UUIDs", uid},
	} {
		byName, byUID := make([]int, shards), make([]int, shards)
		for n := range names {
			byName[shard.Hash(set.name(n))/(1<<62)]++
			byUID[shard.Hash(uid(n))/(1<<62)]++
		}
		fmt.Printf("%-26s by namespace %3d  largest %.2f   by UID %3d  largest %.2f\n", set.title,
			byName, largest(byName), byUID, largest(byUID))
	}
}

// letters returns a, b, … z, aa, ab, …
func letters(n int) string {
	if n < 26 {
		return string(rune('a' + n))
	}
	return letters(n/26-1) + letters(n%26)
}

func largest(in []int) (most float64) {
	for _, n := range in {
		most = max(most, float64(n)*shards/names)
	}
	return most
}
