package benchmark

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// resamples is how often the bootstrap draws.
const resamples = 10_000

// quantile is the smallest value that at least the share q of all values does not exceed. The values are
// sorted.
func quantile[T any](sorted []T, q float64) (v T) {
	if len(sorted) == 0 {
		return v
	}
	return sorted[max(0, int(math.Ceil(q*float64(len(sorted))))-1)]
}

// median of values that are sorted.
func median(sorted []float64) float64 {
	n := len(sorted)
	if n == 0 {
		return 0
	}
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// medianOf is the median and its 95 % bootstrap interval. It is the same for the same values.
func medianOf(values []float64) Interval {
	if len(values) == 0 {
		return Interval{}
	}
	sorted := slices.Sorted(slices.Values(values))
	random := rand.New(rand.NewPCG(1, 2))
	medians, drawn := make([]float64, resamples), make([]float64, len(values))
	for i := range medians {
		for j := range drawn {
			drawn[j] = sorted[random.IntN(len(sorted))]
		}
		slices.Sort(drawn)
		medians[i] = median(drawn)
	}
	slices.Sort(medians)
	return Interval{Value: median(sorted), Low: quantile(medians, 0.025), High: quantile(medians, 0.975)}
}

// ratios divides the durations of pairs.
func ratios(a, b []time.Duration) (r []float64) {
	for i := range a {
		r = append(r, a[i].Seconds()/b[i].Seconds())
	}
	return r
}

// compare says how the times of A relate to those of B, in pairs, and how those of A to others of A.
func compare(metric, a, b string, timesA, timesB, control []time.Duration) Comparison {
	c := Comparison{Metric: metric, A: a, B: b, Pairs: len(timesA),
		Ratio: medianOf(ratios(timesA, timesB)), Control: medianOf(ratios(control, timesA))}
	c.TooNoisy = c.Control.Value < 0.95 || c.Control.Value > 1.05
	return c
}
