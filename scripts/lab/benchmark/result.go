// Package benchmark measures operators: counts first, which are stable, then ratios inside one run.
package benchmark

import "time"

// A Result is one run of the benchmark. Whatever could not be measured is empty, with a line in Notes.
type Result struct {
	Implementations []Measured   `json:"implementations"`
	Comparisons     []Comparison `json:"comparisons,omitempty"`
	// Notes say what was left out and why, and what a number does not mean.
	Notes []string `json:"notes,omitempty"`
}

// Measured is what is known of one implementation.
type Measured struct {
	Name string `json:"name"`
	// NoStatus is for programs that report no status by which it could be seen that a MyWeb is served: their children
	// are seen instead.
	NoStatus bool `json:"noStatus,omitempty"`
	// Counts of requests, for each phase of a MyWeb's life.
	Counts []Count `json:"counts,omitempty"`
	// Curve is how many of N MyWebs had their children and first status, over time.
	Curve []Point `json:"curve,omitempty"`
	// Latency of creation to completed, under open-loop arrivals.
	Latency *Latency `json:"latency,omitempty"`
	// Recovery is how long after a SIGKILL and a start at once a change made meanwhile is served.
	Recovery []time.Duration `json:"recovery,omitempty"`
	// Efficiency is the time of a bare loop of the same writes at the same concurrency, divided by the
	// operator's time: 1 is as fast as can be.
	Efficiency *Interval `json:"efficiency,omitempty"`
	// Processor time that one MyWeb costs while many converge.
	Processor *Processor `json:"processor,omitempty"`
	// Memory at several numbers of MyWebs.
	Memory []Memory `json:"memory,omitempty"`
	Static Static   `json:"static"`
}

// Processor time for one MyWeb: it says where the time beyond the bare loop goes.
type Processor struct {
	// Operator is the operator's own, from its start on.
	Operator time.Duration `json:"operator"`
	// APIServer is that of the API server meanwhile, and Bare that of the API server during the bare loop, which has no
	// watches besides those of the lab.
	APIServer time.Duration `json:"apiServer"`
	Bare      time.Duration `json:"bare"`
}

// A Count is how many requests of one kind a phase took.
type Count struct {
	// Phase is creation, update, rest, restart or deletion.
	Phase string `json:"phase"`
	// Objects is how many MyWebs the phase was about.
	Objects int `json:"objects"`
	// Requests by verb and resource ("apply configmaps"), leases and events apart.
	Requests map[string]int `json:"requests"`
	// NoOps are accepted writes that changed nothing, Conflicts answers 409.
	NoOps     int `json:"noOps"`
	Conflicts int `json:"conflicts"`
	// Watches are those that were open at the end.
	Watches int `json:"watches"`
	// Events are the events recorded.
	Events int `json:"events"`
	// Syncs is how often a MyWeb was handled, by the operator's own metric; -1 when it tells none.
	Syncs int `json:"syncs"`
}

// A Point of a curve.
type Point struct {
	At   time.Duration `json:"at"`
	Done int           `json:"done"`
}

// Latency under open-loop arrivals: MyWebs are created at a fixed rate, whether earlier ones are completed
// or not.
type Latency struct {
	// Rate is in MyWebs a second.
	Rate    float64         `json:"rate"`
	Samples []time.Duration `json:"samples"` // sorted
	P50     time.Duration   `json:"p50"`
	// P99 is 0 when there are less than a thousand samples.
	P99 time.Duration `json:"p99"`
}

// Memory of the operator with a number of MyWebs, and what they cost in processor time.
type Memory struct {
	MyWebs int `json:"myWebs"`
	// RSS is the resident set in bytes.
	RSS int64 `json:"rss"`
	// Goroutines that live in steady state.
	Goroutines int `json:"goroutines"`
	// CPU is the operator's processor time since its start, APIServer that of the API server meanwhile.
	CPU       time.Duration `json:"cpu"`
	APIServer time.Duration `json:"apiServer"`
}

// Static is what can be said without running.
type Static struct {
	// BinaryBytes are those of all programs that an image must hold.
	BinaryBytes int64 `json:"binaryBytes"`
	// Permissions counts the verbs on resources that the roles give; "all" without a role.
	Permissions string `json:"permissions"`
	// Modules that the program is linked from.
	Modules int `json:"modules"`
	// Written are lines that are more than blank or comment, without tests and generated files; -1 when the source is
	// not known.
	Written int `json:"written"`
	// Files are those with the lines that are written.
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
	// Metric is what was timed: "converge 100", "recovery".
	Metric string   `json:"metric"`
	A      string   `json:"a"`
	B      string   `json:"b"`
	Pairs  int      `json:"pairs"`
	Ratio  Interval `json:"ratio"`
	// Control is the same with A against itself; when it leaves 0.95 to 1.05 the machine is too noisy for
	// the ratio to mean anything, and TooNoisy is set.
	Control  Interval `json:"control"`
	TooNoisy bool     `json:"tooNoisy"`
}
