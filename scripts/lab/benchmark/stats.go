package benchmark

import (
	"math"
	"slices"
	"time"

	"golang.org/x/perf/benchmath"
)

// quantile is the smallest value that is at least as large as the share q of all values. The values are sorted.
func quantile[T any](sorted []T, q float64) (v T) {
	if len(sorted) == 0 {
		return v
	}
	return sorted[max(0, int(math.Ceil(q*float64(len(sorted))))-1)]
}

// medianOf is the median and its 95 % interval, which needs six values.
func medianOf(values []float64) Interval {
	if len(values) == 0 {
		return Interval{}
	}
	sample := benchmath.NewSample(slices.Clone(values), &benchmath.DefaultThresholds)
	median := benchmath.AssumeNothing.Summary(sample, 0.95)
	if math.IsInf(median.Lo, 0) || math.IsInf(median.Hi, 0) {
		return Interval{Value: median.Center}
	}
	return Interval{Value: median.Center, Low: median.Lo, High: median.Hi}
}

// ratios divides the durations of each pair.
func ratios(a, b []time.Duration) (r []float64) {
	for i := range a {
		r = append(r, a[i].Seconds()/b[i].Seconds())
	}
	return r
}

// compare computes how the times of A relate to those of B, in pairs, and how times of A relate to other times of A.
func compare(metric, a, b string, timesA, timesB, control []time.Duration) Comparison {
	c := Comparison{Metric: metric, A: a, B: b, Pairs: len(timesA),
		Ratio: medianOf(ratios(timesA, timesB)), Control: medianOf(ratios(control, timesA))}
	c.TooNoisy = c.Control.Value < 0.95 || c.Control.Value > 1.05
	return c
}
