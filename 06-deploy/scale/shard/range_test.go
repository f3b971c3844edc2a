package shard

import (
	"fmt"
	"hash/fnv"
	"math"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	half := Range{0, math.MaxUint64 / 2}
	for name, test := range map[string]struct {
		shard, bounds string
		want          Range
		wrong         string
	}{
		"one shard":             {"0/1", "", All, ""},
		"the first of two":      {"0/2", "", half, ""},
		"the second of two":     {"1/2", "", Range{half.Last + 1, math.MaxUint64}, ""},
		"uneven":                {"1/3", "0x10,0x20", Range{0x10, 0x1f}, ""},
		"the last, uneven":      {"2/3", "0x10,0x20", Range{0x20, math.MaxUint64}, ""},
		"a shard that is not":   {"2/2", "", Range{}, "--shard"},
		"a negative shard":      {"-1/2", "", Range{}, "--shard"},
		"words":                 {"a/b", "", Range{}, "--shard"},
		"too much":              {"0/2/3", "", Range{}, "--shard"},
		"too few bounds":        {"0/3", "0x10", Range{}, "2"},
		"bounds that go down":   {"0/3", "0x20,0x10", Range{}, "ascending"},
		"a bound that is none":  {"0/2", "0xg", Range{}, "0xg"},
		"a bound that is 0":     {"0/2", "0x0", Range{}, "ascending"},
		"a bound of 17 figures": {"0/2", "0x10000000000000000", Range{}, "64-bit"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Parse(test.shard, test.bounds)
			if (err != nil) != (test.wrong != "") || err != nil && !strings.Contains(err.Error(), test.wrong) {
				t.Fatalf("error %v, want %q", err, test.wrong)
			}
			if err == nil && got != test.want {
				t.Errorf("%x, want %x", got, test.want)
			}
		})
	}
}

// Each hash must be in one shard, whatever their number, and the lease must name the range.
func TestShardsHaveNoGapAndDoNotOverlap(t *testing.T) {
	for n := 2; n < 20; n++ {
		next := uint64(0)
		for i := range n {
			r, err := Parse(fmt.Sprintf("%d/%d", i, n), "")
			if err != nil || r.First != next {
				t.Fatalf("shard %d of %d begins with %x, want %x; %v", i, n, r.First, next, err)
			}
			if again, ours := RangeOf(r.lease()); !ours || again != r {
				t.Errorf("lease %s has the range %x, want %x", r.lease(), again, r)
			}
			next = r.Last + 1
		}
		if next != 0 {
			t.Errorf("%d shards end before %x", n, next)
		}
	}
}

func TestRangeOfALease(t *testing.T) {
	for lease, want := range map[string]bool{"myweb-operator": true, "myweb-operator-0-f": false, "other": false,
		"myweb-operator-0000000000000000-00000000000000ff": true, "myweb-operator-0000000000000000-00000000000000ff-x": false} {
		if _, ours := RangeOf(lease); ours != want {
			t.Errorf("%s is a lease of ours: %v, want %v", lease, ours, want)
		}
	}
}

func TestOverlaps(t *testing.T) {
	a := Range{10, 20}
	for other, want := range map[Range]bool{{0, 9}: false, {0, 10}: true, {20, 30}: true, {21, 30}: false, {12, 13}: true, All: true} {
		if a.overlaps(other) != want || other.overlaps(a) != want {
			t.Errorf("%v overlaps %v: %v, want %v", a, other, a.overlaps(other), want)
		}
	}
}

func TestTheHashIsFNV1a(t *testing.T) {
	h := fnv.New64a()
	_, _ = h.Write([]byte("team-a"))
	if got := Hash("team-a"); got != h.Sum64() {
		t.Errorf("%x, want %x", got, h.Sum64())
	}
}
