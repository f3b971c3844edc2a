package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// components of the local cluster. Each holds a lock on cluster/<name>.pid for as long as it lives.
var components = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok"}

func checkCluster(_ context.Context, m Machine) Finding {
	const why = "What runs of it takes memory, and kubectl and the pages meet a cluster that answers in " +
		"part or not at all."
	const cure = "`make up` repairs it, `make down` removes it."
	folder := filepath.Join(m.State, "cluster")
	switch _, err := os.Stat(folder); {
	case errors.Is(err, fs.ErrNotExist):
		return okay("none")
	case err != nil:
		return Finding{Status: Warning, Why: why, Cure: "Make the folder readable, or remove it.",
			What: fmt.Sprintf("Its state cannot be read: %s.", oneLine(err.Error()))}
	}
	var alive, gone []string
	for _, component := range components {
		held, err := locked(filepath.Join(folder, component+".pid"))
		switch {
		case err != nil:
			return Finding{Status: Warning, Why: why, Cure: "Make the file readable, or remove the folder.",
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
	return Finding{Status: Warning, What: what, Why: why, Cure: cure}
}

// locked tells whether another process holds an exclusive lock on the file. It asks for a shared
// lock: two doctors at once must not take each other for a cluster.
func locked(path string) (bool, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer file.Close()
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("lock %s: %w", path, err)
	}
	return false, nil
}
