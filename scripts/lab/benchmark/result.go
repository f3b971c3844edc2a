// Package benchmark measures operators: requests, memory, and the size of a program, its source and its permissions.
package benchmark

// A Result is one run of the benchmark. Values that could not be measured are empty, with a line in Notes.
type Result struct {
	Implementations []Measured `json:"implementations"`
	// Notes list the measurements that were left out and the reasons, and limits of the numbers.
	Notes []string `json:"notes,omitempty"`
}

// Measured has the measurements of one implementation.
type Measured struct {
	Name string `json:"name"`
	// Counts of requests, for each phase of a MyWeb's life.
	Counts []Count `json:"counts,omitempty"`
	// Memory has measurements at several numbers of MyWebs.
	Memory []Memory `json:"memory,omitempty"`
	Static Static   `json:"static"`
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
