package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"example.com/operator-workshop/scripts/internal/cluster"
	"example.com/operator-workshop/scripts/internal/lock"
)

func checkCluster(_ context.Context, m Machine) Finding {
	const why = "What runs of it takes memory, and kubectl and the pages meet a cluster that answers in " +
		"part or not at all."
	const fix = "`make up` repairs it, `make down` removes it."
	folder := filepath.Join(m.State, "cluster")
	switch _, err := os.Stat(folder); {
	case errors.Is(err, fs.ErrNotExist):
		return okay("none")
	case err != nil:
		return Finding{Status: Warning, Why: why, Fix: "Make the folder readable, or remove it.",
			What: fmt.Sprintf("Its state cannot be read: %s.", oneLine(err.Error()))}
	}
	if err := cluster.New("", m.State, func(string, ...any) {}).Elsewhere(); err != nil {
		return Finding{Status: Warning, What: oneLine(err.Error()) + ".", Why: why,
			Fix: "Use the cluster there, or end it there with `make down`."}
	}
	var alive, gone []string
	// Each component holds a lock on its file for as long as it lives.
	for _, component := range cluster.Names() {
		held, err := lock.Held(filepath.Join(folder, component+".pid"))
		switch {
		case err != nil:
			return Finding{Status: Warning, Why: why, Fix: "Make the file readable, or remove the folder.",
				What: fmt.Sprintf("Its state cannot be read: %s.", oneLine(err.Error()))}
		case held:
			alive = append(alive, component)
		default:
			gone = append(gone, component)
		}
	}
	if len(gone) == 0 {
		return okay("running (%s)", folder)
	}
	what := fmt.Sprintf("%s is a cluster of which nothing runs.", folder)
	if len(alive) > 0 {
		what = fmt.Sprintf("%s is a cluster in part: %s runs, %s does not.",
			folder, strings.Join(alive, ", "), strings.Join(gone, ", "))
	}
	return Finding{Status: Warning, What: what, Why: why, Fix: fix}
}
