package cluster

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"example.com/operator-workshop/scripts/examine/process"
)

// holder is the first argument of a process that holds a cluster.
const holder = "cluster-holder"

// init makes this process a holder when Hold has started it. Every program that imports this package, tests included,
// can thus hold a cluster, without another file to install.
func init() {
	if len(os.Args) == 0 || os.Args[0] != holder {
		return
	}
	if err := holdByFlags(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func holdByFlags(args []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	var apiServer, crds []string
	list := func(to *[]string) func(string) error {
		return func(value string) error { *to = append(*to, value); return nil }
	}
	flags := flag.NewFlagSet(holder, flag.ContinueOnError)
	bin := flags.String("bin", "", "the folder of the programs")
	flags.Func("apiserver", "one more flag of the API server", list(&apiServer))
	flags.Func("crd", "a CRD to install before the controllers start", list(&crds))
	if err := flags.Parse(args); err != nil {
		return err
	}
	return HoldHere(ctx, *bin, apiServer, crds, os.Stdin, os.Stdout)
}

// HoldHere starts a separate cluster, prints its state folder to stdout, and removes the cluster when ctx or stdin ends:
// the cluster lives as long as the process at the other end of stdin, however that process ends.
func HoldHere(ctx context.Context, bin string, apiServer, crds []string, stdin io.Reader, stdout io.Writer) (err error) {
	state, err := os.MkdirTemp("", "cluster-")
	if err != nil {
		return err
	}
	c := New(bin, state, func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) })
	c.APIServer, c.Volatile = apiServer, true
	defer func() {
		err = errors.Join(err, c.Down(context.WithoutCancel(ctx)), os.RemoveAll(state))
	}()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, stdin)
		cancel()
	}()
	if err := c.Up(ctx, crds...); err != nil {
		return err
	}
	fmt.Fprintln(stdout, state)
	<-ctx.Done()
	return nil
}

// A Held is a cluster that another process holds for this process.
type Held struct {
	*Cluster
	// State is the folder of the cluster.
	State string

	holder *exec.Cmd
	stdin  io.Closer
}

// Hold starts a cluster that ends with Release, or with this process, however it ends. ctx limits only the start.
func Hold(ctx context.Context, bin string, apiServer, crds []string) (*Held, error) {
	self, err := process.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, "--bin", bin)
	cmd.Args[0] = holder
	for _, flag := range apiServer {
		cmd.Args = append(cmd.Args, "--apiserver", flag)
	}
	for _, crd := range crds {
		path, err := filepath.Abs(crd)
		if err != nil {
			return nil, err
		}
		cmd.Args = append(cmd.Args, "--crd", path)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C must reach only this process
	words := &bytes.Buffer{}
	cmd.Stderr = words
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, func() { _ = stdin.Close() })()
	line, err := bufio.NewReader(stdout).ReadString('\n')
	h := &Held{State: strings.TrimSpace(line), holder: cmd, stdin: stdin}
	if ctx.Err() != nil {
		return nil, errors.Join(context.Cause(ctx), h.Release())
	}
	if err != nil {
		return nil, fmt.Errorf("start a local cluster: %w\n%s", errors.Join(err, h.Release()), words)
	}
	h.Cluster = New(bin, h.State, func(string, ...any) {})
	h.APIServer, h.Volatile = apiServer, true // Up may restart the API server
	return h, nil
}

// Release removes the cluster, and returns when it is gone.
func (h *Held) Release() error {
	_ = h.stdin.Close() // already closed when the start was cancelled
	return h.holder.Wait()
}
