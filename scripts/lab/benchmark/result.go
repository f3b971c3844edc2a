// Package benchmark measures operators: first counts, which are stable, then ratios inside one run.
package benchmark

import "time"

// A Result is one run of the benchmark. Values that could not be measured are empty, with a line in Notes.
type Result struct {
	Implementations []Measured   `json:"implementations"`
	Comparisons     []Comparison `json:"comparisons,omitempty"`
	// Notes list the measurements that were left out and the reasons, and limits of the numbers.
	Notes []string `json:"notes,omitempty"`
}

// Measured has the measurements of one implementation.
type Measured struct {
	Name string `json:"name"`
	// NoStatus is set for programs that report no status that shows when a MyWeb is served: the lab watches their
	// children instead.
	NoStatus bool `json:"noStatus,omitempty"`
	// Counts of requests, for each phase of a MyWeb's life.
	Counts []Count `json:"counts,omitempty"`
	// Convergence of many MyWebs.
	Convergence *Convergence `json:"convergence,omitempty"`
	// Latency of creation to completed, under open-loop arrivals.
	Latency *Latency `json:"latency,omitempty"`
	// Memory has measurements at several numbers of MyWebs.
	Memory []Memory `json:"memory,omitempty"`
	Static Static   `json:"static"`
}

// Convergence has medians of several runs.
type Convergence struct {
	// Objects is how many MyWebs converged, Took the time until the last of them had its children and first status.
	Objects int           `json:"objects"`
	Took    time.Duration `json:"took"`
	// Efficiency is the time of a bare loop with the same writes at the same concurrency, divided by the operator's
	// time: 1 is the best possible value.
	Efficiency Interval `json:"efficiency"`
	// Operator is the operator's own processor time for one MyWeb, since its start.
	Operator time.Duration `json:"operator"`
	// APIServer is the API server's processor time for one MyWeb meanwhile. Bare is the same during the bare loop, when
	// the API server serves only the lab's watches.
	APIServer time.Duration `json:"apiServer"`
	Bare      time.Duration `json:"bare"`
}

// A Count has the numbers of requests of one phase.
type Count struct {
	// Phase is creation, update, steady state or restart.
	Phase string `json:"phase"`
	// Objects is the number of MyWebs in the phase.
	Objects int `json:"objects"`
	// Requests by verb and resource ("apply configmaps"), without leases and events.
	Requests map[string]int `json:"requests"`
	// NoOps are accepted writes that changed nothing; Conflicts are 409 answers.
	NoOps     int `json:"noOps"`
	Conflicts int `json:"conflicts"`
}

// Latency has the latencies under open-loop arrivals: the lab creates MyWebs at a fixed rate, even when earlier ones
// are not completed.
type Latency struct {
	// Rate is in MyWebs a second.
	Rate    float64       `json:"rate"`
	Samples int           `json:"samples"`
	P50     time.Duration `json:"p50"`
	// P99 is 0 with fewer than a thousand samples.
	P99 time.Duration `json:"p99"`
}

// Memory has the operator's memory with a number of MyWebs.
type Memory struct {
	MyWebs int `json:"myWebs"`
	// RSS is the resident set in bytes.
	RSS int64 `json:"rss"`
}

// Static has the results that need no running program.
type Static struct {
	// BinaryBytes is the size of all programs that an image must contain.
	BinaryBytes int64 `json:"binaryBytes"`
	// Permissions counts the verbs on resources that the roles grant; "all" without a role.
	Permissions string `json:"permissions"`
	// Written counts lines that are neither blank nor only a comment, without tests and generated files, and Files the
	// files with these lines; both are 0 when the source is unknown.
	Written int `json:"written"`
	Files   int `json:"files"`
}

// An Interval is an estimate and the limits of its 95 % interval, which are 0 where there were too few measurements.
type Interval struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// A Comparison is a ratio of times, A divided by B, from pairs run in the order A B B A.
type Comparison struct {
	// Metric names the measured time: "converge 100".
	Metric string   `json:"metric"`
	A      string   `json:"a"`
	B      string   `json:"b"`
	Pairs  int      `json:"pairs"`
	Ratio  Interval `json:"ratio"`
	// Control is the same ratio for A against itself. When it leaves 0.95 to 1.05, the machine is too noisy for the
	// ratio to mean anything, and TooNoisy is set.
	Control  Interval `json:"control"`
	TooNoisy bool     `json:"tooNoisy"`
}
