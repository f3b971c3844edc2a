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
	// Curve has how many of N MyWebs had their children and first status, over time.
	Curve []Point `json:"curve,omitempty"`
	// Latency of creation to completed, under open-loop arrivals.
	Latency *Latency `json:"latency,omitempty"`
	// Recovery is the time from a SIGKILL and an immediate restart until the operator has served a change made
	// meanwhile.
	Recovery []time.Duration `json:"recovery,omitempty"`
	// Efficiency is the time of a bare loop with the same writes at the same concurrency, divided by the operator's
	// time: 1 is the best possible value.
	Efficiency *Interval `json:"efficiency,omitempty"`
	// Processor is the processor time for one MyWeb while many converge.
	Processor *Processor `json:"processor,omitempty"`
	// Memory has measurements at several numbers of MyWebs.
	Memory []Memory `json:"memory,omitempty"`
	Static Static   `json:"static"`
}

// Processor is the processor time for one MyWeb: it shows where the time beyond the bare loop goes.
type Processor struct {
	// Operator is the operator's own processor time since its start.
	Operator time.Duration `json:"operator"`
	// APIServer is the API server's processor time meanwhile. Bare is the API server's processor time during the bare
	// loop, when it serves only the lab's watches.
	APIServer time.Duration `json:"apiServer"`
	Bare      time.Duration `json:"bare"`
}

// A Count has the numbers of requests of one phase.
type Count struct {
	// Phase is creation, update, rest, restart or deletion.
	Phase string `json:"phase"`
	// Objects is the number of MyWebs in the phase.
	Objects int `json:"objects"`
	// Requests by verb and resource ("apply configmaps"), without leases and events.
	Requests map[string]int `json:"requests"`
	// NoOps are accepted writes that changed nothing; Conflicts are 409 answers.
	NoOps     int `json:"noOps"`
	Conflicts int `json:"conflicts"`
	// Watches are those that were open at the end.
	Watches int `json:"watches"`
	// Events are the events recorded.
	Events int `json:"events"`
	// Syncs is how often the operator handled a MyWeb, by its own metric; -1 when it has no such metric.
	Syncs int `json:"syncs"`
}

// A Point of a curve.
type Point struct {
	At   time.Duration `json:"at"`
	Done int           `json:"done"`
}

// Latency has the latencies under open-loop arrivals: the lab creates MyWebs at a fixed rate, even when earlier ones
// are not completed.
type Latency struct {
	// Rate is in MyWebs a second.
	Rate    float64         `json:"rate"`
	Samples []time.Duration `json:"samples"` // sorted
	P50     time.Duration   `json:"p50"`
	// P99 is 0 with fewer than a thousand samples.
	P99 time.Duration `json:"p99"`
}

// Memory has the operator's memory with a number of MyWebs, and the processor time that they cost.
type Memory struct {
	MyWebs int `json:"myWebs"`
	// RSS is the resident set in bytes.
	RSS int64 `json:"rss"`
	// Goroutines that live in steady state.
	Goroutines int `json:"goroutines"`
	// CPU is the operator's processor time since its start; APIServer is the API server's processor time meanwhile.
	CPU       time.Duration `json:"cpu"`
	APIServer time.Duration `json:"apiServer"`
}

// Static has the results that need no running program.
type Static struct {
	// BinaryBytes is the size of all programs that an image must contain.
	BinaryBytes int64 `json:"binaryBytes"`
	// Permissions counts the verbs on resources that the roles grant; "all" without a role.
	Permissions string `json:"permissions"`
	// Modules that the program is linked from.
	Modules int `json:"modules"`
	// Written counts lines that are neither blank nor only a comment, without tests and generated files; -1 when the
	// source is unknown.
	Written int `json:"written"`
	// Files counts the files with the lines in Written.
	Files int `json:"files"`
}

// An Interval is an estimate and the limits of its 95 % interval, which are 0 where there were too few measurements.
type Interval struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// A Comparison is a ratio of times, A divided by B, from pairs run in the order A B B A.
type Comparison struct {
	// Metric names the measured time: "converge 100", "recovery".
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
