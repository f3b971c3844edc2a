package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Programs returns the folder with the programs of a cluster: KUBEBUILDER_ASSETS, or else the next folder bin/ around the
// working folder that has an API server.
func Programs() (string, error) {
	dir := os.Getenv("KUBEBUILDER_ASSETS")
	if dir == "" {
		var err error
		if dir, err = nextBin(); err != nil {
			return "", err
		}
	}
	if missing := Missing(dir); len(missing) > 0 {
		return dir, fmt.Errorf("%s has no %s", dir, strings.Join(missing, ", "))
	}
	return filepath.Abs(dir)
}

// Missing returns the names of the programs of a cluster that are not in a folder.
func Missing(dir string) (names []string) {
	for _, name := range append(Names(), "kubectl") {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.IsDir() {
			names = append(names, name)
		}
	}
	return names
}

// nextBin returns the folder bin/ with an API server that is next to the working folder.
func nextBin() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; ; dir = filepath.Dir(dir) {
		bin := filepath.Join(dir, "bin")
		if _, err := os.Stat(filepath.Join(bin, "kube-apiserver")); err == nil {
			return bin, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("KUBEBUILDER_ASSETS must name a folder with kube-apiserver, etcd and kubectl, as setup-envtest " +
				"makes it: export KUBEBUILDER_ASSETS=$(setup-envtest use -p path)")
		}
	}
}
