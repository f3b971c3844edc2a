package testenv

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Local is a running local cluster of a test's own.
type Local struct {
	// Config authenticates as the cluster's administrator.
	Config *rest.Config
	// Kubeconfig is the path of the file that Config was read from.
	Kubeconfig string
	// AuditLog is the path of the API server's audit log, one JSON object a line.
	AuditLog string

	root, state string
	holder      *exec.Cmd
	hold        io.Closer
}

// StartLocal starts a local cluster that nobody else uses: a complete control plane with simulated
// nodes. The given CRDs are installed before its controllers start. The caller must call Stop; when
// the test dies before, the cluster ends too.
func StartLocal(crds ...string) (*Local, error) {
	root, err := Root()
	if err != nil {
		return nil, err
	}
	args := []string{"hold"}
	for _, crd := range crds {
		path, err := filepath.Abs(crd)
		if err != nil {
			return nil, err
		}
		args = append(args, "--crd", path)
	}
	l := &Local{root: root, holder: exec.Command(filepath.Join(root, "scripts", "workshop"), args...)}
	l.holder.Stderr = os.Stderr
	l.holder.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C ends the test, and that ends the holder
	if l.hold, err = l.holder.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := l.holder.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := l.holder.Start(); err != nil {
		return nil, fmt.Errorf("start a local cluster: %w", err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("start a local cluster: %w", errors.Join(err, l.Stop()))
	}
	l.state = strings.TrimSpace(line)
	l.Kubeconfig = filepath.Join(l.state, "kubeconfig")
	l.AuditLog = filepath.Join(l.state, "cluster", "audit.log")
	l.Config, err = clientcmd.BuildConfigFromFlags("", l.Kubeconfig)
	if err != nil {
		return nil, errors.Join(err, l.Stop())
	}
	l.Config.QPS = -1 // as above
	return l, nil
}

// User makes a client certificate for the named user, who has no permission yet, and returns the
// path of a kubeconfig with it.
func (l *Local) User(name string, groups ...string) (string, error) {
	args := []string{"user", name}
	for _, g := range groups {
		args = append(args, "--group", g)
	}
	cmd := exec.Command(filepath.Join(l.root, "scripts", "workshop"), args...)
	cmd.Env = append(os.Environ(), "WORKSHOP_STATE="+l.state)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("workshop %s: %w", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}

// Stop ends the cluster and removes its files.
func (l *Local) Stop() error {
	return errors.Join(l.hold.Close(), l.holder.Wait())
}
