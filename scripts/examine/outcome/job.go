package outcome

// A Job asks the lab to run checks on one program: exercises send it to `lab judge` as JSON.
type Job struct {
	// Name is the name of the job, and of the program's user.
	Name string `json:"name"`
	// Program is an executable file.
	Program string   `json:"program"`
	Checks  []string `json:"checks"`
	// Then are checks that run when all of Checks have passed.
	Then []string `json:"then,omitempty"`
	// Of is an operator of the list, whose roles, arguments and webhooks the program gets; Rights is "all" when the
	// program may do everything nevertheless. Without Of the program has none of these, and may do everything.
	Of     string `json:"of,omitempty"`
	Rights string `json:"rights,omitempty"`
	// Folder has the files of the roles and webhooks, in place of the operator's own files.
	Folder string `json:"folder,omitempty"`
	// Objects means that the objects of the program are judged, because the exercise does not yet ask for a status.
	Objects bool `json:"objects,omitempty"`
	// CRD is a file that replaces the installed CRD during the job.
	CRD string `json:"crd,omitempty"`
	// Specification is a file: the lab makes the checks from it. CRD is then the folder of the CRD that it describes.
	Specification string `json:"specification,omitempty"`
}

// Fast stands for the fast checks of behaviours in a Job, Behaviours for all checks of behaviours.
const (
	Fast       = "fast"
	Behaviours = "behaviours"
)

// A Judged is an answer of the lab, one line of JSON: the result of a check of a job. Error means that the lab failed;
// there is no verdict.
type Judged struct {
	Job string `json:"job"`
	Result
	Error string `json:"error,omitempty"`
}
