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

// Local is a running local cluster that one test uses alone.
type Local struct {
	// Config authenticates as the cluster's administrator.
	Config *rest.Config
	// AuditLog is the path of the API server's audit log, one JSON object a line.
	AuditLog string

	holder *exec.Cmd
	hold   io.Closer
}

// StartLocal starts a separate local cluster: a complete control plane with simulated nodes. The given CRDs are
// installed before its controllers start. The caller must call Stop; when the test process dies before, the
// cluster ends too.
func StartLocal(crds ...string) (*Local, error) {
	root, err := Root()
	if err != nil {
		return nil, err
	}
	l := &Local{holder: exec.Command(filepath.Join(root, "scripts", "workshop"), "hold")}
	for _, crd := range crds {
		l.holder.Args = append(l.holder.Args, "--crd", crd)
	}
	l.holder.Stderr = os.Stderr
	l.holder.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C ends the test, and that ends the holder
	stdin, noStdin := l.holder.StdinPipe()
	stdout, noStdout := l.holder.StdoutPipe()
	if err := errors.Join(noStdin, noStdout, l.holder.Start()); err != nil {
		return nil, fmt.Errorf("start a local cluster: %w", err)
	}
	l.hold = stdin
	line, err := bufio.NewReader(stdout).ReadString('\n')
	state := strings.TrimSpace(line)
	l.AuditLog = filepath.Join(state, "cluster", "audit.log")
	if err == nil {
		l.Config, err = clientcmd.BuildConfigFromFlags("", filepath.Join(state, "kubeconfig"))
	}
	if err != nil {
		return nil, fmt.Errorf("start a local cluster: %w", errors.Join(err, l.Stop()))
	}
	l.Config.QPS = -1 // no limit on the client's side: a test must not wait for itself
	return l, nil
}

// Stop ends the cluster and removes its files.
func (l *Local) Stop() error {
	return errors.Join(l.hold.Close(), l.holder.Wait())
}
