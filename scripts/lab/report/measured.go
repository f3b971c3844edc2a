package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"example.com/operator-workshop/scripts/lab/benchmark"
)

// measurements turn a benchmark into sections; left lists the missing parts.
type measurements struct {
	*benchmark.Result
	names []string
	left  []string
}

func (m *measurements) sections() (all []section) {
	add := func(title string, blocks []block) {
		if len(blocks) > 0 {
			all = append(all, section{title, blocks})
		}
	}
	add("Requests", m.requests())
	add("Time and memory", slices.Concat(m.convergence(), m.latency(), m.memory()))
	add("Ratios", m.ratios())
	add("Efficiency", m.efficiency())
	add("Recovery", m.recovery())
	add("Counts without running", m.static())
	return all
}

// of returns the implementations that have a measurement, in the order of names, and notes the others.
func (m *measurements) of(what string, has func(benchmark.Measured) bool) (with []benchmark.Measured) {
	var without []string
	for _, name := range m.names {
		i := slices.IndexFunc(m.Implementations, func(i benchmark.Measured) bool { return i.Name == name })
		if i >= 0 && has(m.Implementations[i]) {
			with = append(with, m.Implementations[i])
		} else {
			without = append(without, name)
		}
	}
	switch {
	case len(m.Implementations) == 0: // there is no benchmark
	case len(with) == 0:
		m.left = append(m.left, what)
	case len(without) > 0:
		m.left = append(m.left, what+" of "+and(without))
	}
	return with
}

func namesOf(measured []benchmark.Measured) (names []string) {
	for _, i := range measured {
		names = append(names, i.Name)
	}
	return names
}

// phase returns an implementation's count of a phase.
func phase(i benchmark.Measured, name string) (benchmark.Count, bool) {
	at := slices.IndexFunc(i.Counts, func(c benchmark.Count) bool { return c.Phase == name })
	if at < 0 {
		return benchmark.Count{}, false
	}
	return i.Counts[at], true
}

// phases returns the names of the phases in their order, and the kinds of requests of each phase, the most frequent
// first.
func phases(with []benchmark.Measured) (names []string, kinds map[string][]string) {
	sums := map[string]map[string]float64{}
	for _, i := range with {
		for _, c := range i.Counts {
			if sums[c.Phase] == nil {
				sums[c.Phase] = map[string]float64{}
				names = append(names, c.Phase)
			}
			for kind, n := range c.Requests {
				sums[c.Phase][kind] += float64(n) / float64(max(1, c.Objects))
			}
		}
	}
	kinds = map[string][]string{}
	for name, sum := range sums {
		kinds[name] = sortedKeys(sum)
		slices.SortStableFunc(kinds[name], func(a, b string) int { return cmp.Compare(sum[b], sum[a]) })
	}
	return names, kinds
}

func (m *measurements) requests() []block {
	with := m.of("the ledger of requests", func(i benchmark.Measured) bool { return len(i.Counts) > 0 })
	if len(with) == 0 {
		return nil
	}
	t := &table{Caption: "The ledger: requests for each MyWeb, by phase, verb and resource", Numbers: true,
		Head: append([]string{"requests for each MyWeb"}, namesOf(with)...)}
	names, kinds := phases(with)
	for _, name := range names {
		line := func(label string, value func(benchmark.Count) string) row {
			cells := []cell{{Text: label}}
			for _, i := range with {
				text := "not measured"
				if c, ok := phase(i, name); ok {
					text = value(c)
				}
				cells = append(cells, cell{Text: text})
			}
			return row{Cells: cells}
		}
		head := line("Phase: "+name, func(c benchmark.Count) string { return count(c.Objects, "MyWeb") })
		head.Group = true
		t.Rows = append(t.Rows, head)
		for _, kind := range kinds[name] {
			t.Rows = append(t.Rows, line(kind, func(c benchmark.Count) string { return per(c.Requests[kind], c.Objects) }))
		}
		t.Rows = append(t.Rows,
			line("all requests", func(c benchmark.Count) string { return per(sum(c.Requests), c.Objects) }),
			line("no-op writes", func(c benchmark.Count) string { return per(c.NoOps, c.Objects) }),
			line("conflicts", func(c benchmark.Count) string { return per(c.Conflicts, c.Objects) }),
			line("events", func(c benchmark.Count) string { return per(c.Events, c.Objects) }),
			line("syncs", func(c benchmark.Count) string {
				if c.Syncs < 0 {
					return "not reported"
				}
				return per(c.Syncs, c.Objects)
			}),
			line("watches open at the end, in all", func(c benchmark.Count) string { return number(c.Watches) }))
	}
	return []block{
		{Text: "Counts do not depend on the machine. For one MyWeb an operator needs at least three writes of " +
			"children and one of status."},
		{Table: t},
	}
}

func sum(counts map[string]int) (n int) {
	for _, c := range counts {
		n += c
	}
	return n
}

func (m *measurements) convergence() []block {
	with := m.of("convergence", func(i benchmark.Measured) bool { return len(i.Curve) > 0 })
	if len(with) == 0 {
		return nil
	}
	t := &table{Caption: "Convergence: how long until so many MyWebs had their children and first status", Numbers: true,
		Head: []string{"operator", "MyWebs", "half of them", "90 %", "all"}}
	for _, i := range with {
		most := slices.MaxFunc(i.Curve, func(a, b benchmark.Point) int { return cmp.Compare(a.Done, b.Done) }).Done
		cells := []cell{{Text: i.Name}, {Text: number(most)}}
		for _, share := range []float64{0.5, 0.9, 1} {
			at := slices.IndexFunc(i.Curve, func(p benchmark.Point) bool { return float64(p.Done) >= share*float64(most) })
			cells = append(cells, cell{Text: duration(i.Curve[at].At)})
		}
		t.Rows = append(t.Rows, row{Cells: cells})
	}
	return []block{{Table: t}}
}

// quantile of sorted samples.
func quantile(sorted []time.Duration, q float64) time.Duration {
	return sorted[max(0, int(math.Ceil(q*float64(len(sorted))))-1)]
}

func (m *measurements) latency() []block {
	with := m.of("latency", func(i benchmark.Measured) bool { return i.Latency != nil && len(i.Latency.Samples) > 0 })
	if len(with) == 0 {
		return nil
	}
	t := &table{Caption: "Latency from creation to completed, under open-loop arrivals", Numbers: true,
		Head: []string{"operator", "MyWebs a" + space + "second", "samples", "p50", "p90", "p99", "longest"}}
	for _, i := range with {
		samples := slices.Sorted(slices.Values(i.Latency.Samples))
		p99 := "needs 1,000 samples"
		if i.Latency.P99 > 0 {
			p99 = duration(i.Latency.P99)
		}
		t.Rows = append(t.Rows,
			row{Cells: []cell{{Text: i.Name}, {Text: digits(i.Latency.Rate)}, {Text: number(len(samples))},
				{Text: duration(i.Latency.P50)}, {Text: duration(quantile(samples, 0.9))}, {Text: p99},
				{Text: duration(samples[len(samples)-1])}}})
	}
	return []block{{Table: t}}
}

func (m *measurements) memory() []block {
	with := m.of("memory and processor time", func(i benchmark.Measured) bool { return len(i.Memory) > 0 })
	if len(with) == 0 {
		return nil
	}
	t := &table{Caption: "Memory and processor time, by the number of MyWebs", Numbers: true, Head: []string{"operator",
		"MyWebs", "resident set", "goroutines", "operator's processor time", "API server's meanwhile"}}
	for _, i := range with {
		for _, at := range i.Memory {
			t.Rows = append(t.Rows, row{Cells: []cell{{Text: i.Name}, {Text: number(at.MyWebs)},
				{Text: mebibytes(at.RSS)}, {Text: known(at.Goroutines)}, {Text: duration(at.CPU)}, {Text: duration(at.APIServer)}}})
		}
	}
	return []block{{Table: t}}
}

// known formats a number; 0 and less mean that it was not measured.
func known(n int) string {
	if n <= 0 {
		return "–"
	}
	return number(n)
}

func (m *measurements) ratios() []block {
	if len(m.Comparisons) == 0 {
		if len(m.Implementations) > 1 {
			m.left = append(m.left, "ratios of times")
		}
		return nil
	}
	t := &table{Caption: "Ratios of times, with their 95 % intervals",
		Head: []string{"metric", "pairs", "ratio", "interval", "A/A control", "in words"}}
	for _, c := range m.Comparisons {
		ratio, interval := fmt.Sprintf("%.2f", c.Ratio.Value), limits(c.Ratio)
		if c.TooNoisy {
			ratio, interval = "too"+space+"noisy", "–"
		}
		control := "not run"
		if c.Control != (benchmark.Interval{}) {
			control = fmt.Sprintf("%.2f"+space+"(%s)", c.Control.Value, limits(c.Control))
		}
		t.Rows = append(t.Rows,
			row{Cells: []cell{{Text: fmt.Sprintf("%s, %s"+space+"÷"+space+"%s", c.Metric, c.A, c.B)}, {Text: number(c.Pairs)},
				{Text: ratio}, {Text: interval}, {Text: control}, {Text: reading(c)}}})
	}
	return []block{{Text: "A time means little on a shared machine, so only ratios from one run are given: A divided " +
		"by B, run in the order A B B A."}, {Table: t}}
}

// reading explains a ratio.
func reading(c benchmark.Comparison) string {
	switch {
	case c.TooNoisy:
		return fmt.Sprintf("The machine is too noisy to say: %s against itself left 0.95 to 1.05.", c.A)
	case c.Ratio.High == 0:
		return "There are too few pairs to say: an interval needs six."
	case c.Ratio.Low <= 1 && c.Ratio.High >= 1:
		return "No difference can be seen: the interval holds 1."
	case c.Ratio.Value > 1:
		return fmt.Sprintf("%s takes %.2f times as long as %s.", c.A, c.Ratio.Value, c.B)
	default:
		return fmt.Sprintf("%s takes %.0f %% of the time of %s.", c.A, 100*c.Ratio.Value, c.B)
	}
}

func (m *measurements) efficiency() []block {
	with := m.of("efficiency against a bare loop", func(i benchmark.Measured) bool { return i.Efficiency != nil })
	if len(with) == 0 {
		return nil
	}
	t := &table{Caption: "Efficiency: a bare loop of the same writes, divided by the operator's time; and the processor " +
		"time for one MyWeb", Numbers: true,
		Head: []string{"operator", "efficiency", "interval", "operator", "API server", "API server, bare loop"}}
	for _, i := range with {
		cells := []cell{{Text: i.Name}, {Text: fmt.Sprintf("%.2f", i.Efficiency.Value)}, {Text: limits(*i.Efficiency)}}
		if p := i.Processor; p != nil {
			cells = append(cells, cell{Text: duration(p.Operator)}, cell{Text: duration(p.APIServer)}, cell{Text: duration(p.Bare)})
		} else {
			cells = append(cells, cell{Text: "–"}, cell{Text: "–"}, cell{Text: "–"})
		}
		t.Rows = append(t.Rows, row{Cells: cells})
	}
	return []block{{Table: t}}
}

func (m *measurements) recovery() []block {
	with := m.of("recovery after a kill", func(i benchmark.Measured) bool { return len(i.Recovery) > 0 })
	if len(with) == 0 {
		return nil
	}
	t := &table{Caption: "Recovery: from the start after a SIGKILL until a change made meanwhile is served", Numbers: true,
		Head: []string{"operator", "kills", "shortest", "median", "longest"}}
	for _, i := range with {
		sorted := slices.Sorted(slices.Values(i.Recovery))
		t.Rows = append(t.Rows, row{Cells: []cell{{Text: i.Name}, {Text: number(len(sorted))}, {Text: duration(sorted[0])},
			{Text: duration(quantile(sorted, 0.5))}, {Text: duration(sorted[len(sorted)-1])}}})
	}
	return []block{{Table: t}}
}

func (m *measurements) static() []block {
	with := m.of("sizes of the programs", func(i benchmark.Measured) bool { return i.Static != benchmark.Static{} })
	if len(with) == 0 {
		return nil
	}
	t := &table{Caption: "The programs", Head: append([]string{"what"}, namesOf(with)...), Numbers: true}
	line := func(label string, value func(benchmark.Measured) string) {
		cells := []cell{{Text: label}}
		for _, i := range with {
			cells = append(cells, cell{Text: value(i)})
		}
		t.Rows = append(t.Rows, row{Cells: cells})
	}
	lines := func(n int) string {
		if n < 0 {
			return "not known"
		}
		return number(n)
	}
	line("size of the binary", func(i benchmark.Measured) string { return mebibytes(i.Static.BinaryBytes) })
	line("modules linked", func(i benchmark.Measured) string { return known(i.Static.Modules) })
	line("lines written", func(i benchmark.Measured) string { return lines(i.Static.Written) })
	line("goroutines in steady state", func(i benchmark.Measured) string {
		if len(i.Memory) == 0 {
			return "–"
		}
		last := i.Memory[len(i.Memory)-1]
		return fmt.Sprintf("%s (with %s)", known(last.Goroutines), count(last.MyWebs, "MyWeb"))
	})
	return []block{{Table: t}}
}
