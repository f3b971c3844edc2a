//go:build !linux

package pod

import (
	"os"
	"os/exec"
)

func check() error { return ErrNone }

// An Init is the first process of a pod.
type Init struct {
	*exec.Cmd
}

// New returns an error: this system has no namespaces.
func New(Pod, Container, *os.File) (*Init, error) { return nil, ErrNone }

// Run returns an error: this system has no namespaces.
func (p *Init) Run() (pid int, err error) { return 0, ErrNone }

// End returns nothing: this system has no namespaces.
func (p *Init) End() *End { return nil }
