package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"example.com/operator-workshop/scripts/examine/outcome"
	"example.com/operator-workshop/scripts/lab/myweb/checks"
)

// Ways are a short report: a row for each implementation, which a page can show.
type Ways struct {
	Date    string   `json:"date"`
	Commit  string   `json:"commit"`
	Command string   `json:"command"`
	Machine []string `json:"machine"`
	Rows    []Way    `json:"rows"`
	// Notes are the reasons for unknown values of an implementation.
	Notes []string `json:"notes,omitempty"`
}

// A Way is a row for an implementation.
type Way struct {
	Name  string `json:"name"`
	Title string `json:"title"`
	// Cells are the known cells, by the heads of their columns.
	Cells map[string]string `json:"cells"`
}

// columns are the heads of the table; waysText explains them.
var columns = []string{"lines", "files", "behaviours", "crashes", "faults", "requests", "steady", "size", "permissions"}

const (
	unknown = "–"
	miB     = 1 << 20
)

// waysText explains the columns.
const waysText = `Lines and files are those that the author writes and maintains. Behaviours, crashes and faults are checks that passed,
of all: a skipped check is not passed. Requests are those that create one MyWeb; steady are those in steady state. Size is that
of all programs that an image must hold, in MiB. Permissions are verbs on resources.
`

// Ways returns the short report.
func (r *Comparison) Ways() *Ways {
	w := &Ways{Date: r.Date.UTC().Format("2006-01-02"), Commit: r.Commit, Command: strings.Join(r.Commands, "; "),
		Machine: slices.Concat(r.Machine, r.Versions)}
	for _, i := range r.Impls {
		row := Way{Name: i.Name, Title: i.Title, Cells: map[string]string{}}
		for family, column := range map[string]string{"behaviour/": "behaviours", "crash/": "crashes", "fault/": "faults"} {
			outcomes := slices.DeleteFunc(slices.Clone(i.Report.Findings), func(o outcome.Result) bool {
				return !strings.HasPrefix(o.ID, family)
			})
			if slices.ContainsFunc(outcomes, isUndisturbed) {
				w.Notes = append(w.Notes, i.Name+": undisturbed runs end in different states, so a run with a "+
					"crash cannot be compared with them.")
			} else if len(outcomes) > 0 { // a skipped check is not passed
				row.Cells[column] = fmt.Sprintf("%d/%d", outcome.Count(outcomes, outcome.Passed), len(outcomes))
			}
		}
		row.measured(i)
		w.Rows = append(w.Rows, row)
		for _, n := range r.Notes {
			if strings.HasPrefix(n, i.Name+": ") {
				w.Notes = append(w.Notes, n)
			}
		}
	}
	return w
}

// isUndisturbed reports whether an outcome is of an undisturbed run, with which crash sequences are compared. Such a
// run has an outcome only when it failed.
func isUndisturbed(o outcome.Result) bool {
	return strings.HasPrefix(o.ID, "crash/") && strings.Contains(o.ID, "-undisturbed-")
}

func (w Way) measured(i Implementation) {
	if i.Static.Files > 0 {
		w.Cells["lines"], w.Cells["files"] = fmt.Sprint(i.Static.Written), fmt.Sprint(i.Static.Files)
	}
	if i.Static.BinaryBytes > 0 {
		w.Cells["size"] = fmt.Sprint((i.Static.BinaryBytes + miB/2) / miB)
	}
	if i.Static.Permissions != "" {
		w.Cells["permissions"] = i.Static.Permissions
	}
	if counts := i.counted().Requests[checks.Creation]; counts != nil {
		w.Cells["requests"] = strings.TrimSuffix(fmt.Sprintf("%.1f", float64(sum(counts))/10), ".0")
	}
	if counts := i.counted().Requests[checks.SteadyState]; counts != nil {
		w.Cells["steady"] = fmt.Sprint(sum(counts))
	}
}

func sum(counts map[string]int) (n int) {
	for _, c := range counts {
		n += c
	}
	return n
}

// Print writes the table and the notes.
func (w *Ways) Print(out io.Writer) error {
	columned := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(columned, strings.Join(append([]string{"way"}, columns...), "\t")+"\t")
	for _, way := range w.Rows {
		fmt.Fprint(columned, way.Name, "\t")
		for _, head := range columns {
			fmt.Fprint(columned, cmp.Or(way.Cells[head], unknown), "\t")
		}
		fmt.Fprintln(columned)
	}
	if err := columned.Flush(); err != nil {
		return err
	}
	for _, note := range w.Notes {
		fmt.Fprintln(out, note)
	}
	return nil
}

// ReadWays reads the ways.json that compare wrote.
func ReadWays(file string) (*Ways, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	w := &Ways{}
	if err := json.Unmarshal(data, w); err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	return w, nil
}
