//go:build !linux

package pod

import (
	"os"
	"os/exec"
)

func check() error { return ErrNone }

// A Process is the first process of a pod.
type Process struct {
	*exec.Cmd
}

// New returns an error: this system has no namespaces.
func New(Pod, Program, *os.File) (*Process, error) { return nil, ErrNone }

// Run returns an error: this system has no namespaces.
func (p *Process) Run() (pid int, err error) { return 0, ErrNone }

// End returns nothing: this system has no namespaces.
func (p *Process) End() *End { return nil }
