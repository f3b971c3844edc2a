package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"example.com/operator-workshop/scripts/examine/lock"
	"example.com/operator-workshop/scripts/examine/process"
)

// A component runs exactly while a process holds the lock on its .pid file: the file is opened and locked here and
// inherited by the process, so that the kernel drops the lock when the process ends, by kill -9 or with the machine.
// The folder may be shared with a container, whose processes have other numbers here: a component gets a signal only
// when the whole record in the file agrees with the process.

// A pidFile is the content of a .pid file.
type pidFile struct {
	process.Identity
	// Mark is the mark with which the component was started.
	Mark string `json:"mark"`
}

func (c *Cluster) pidFile(name string) string { return filepath.Join(c.dir(), name+".pid") }

// owner reads the .pid file of a component. Its process may have ended.
func (c *Cluster) owner(name string) (r pidFile, err error) {
	data, err := os.ReadFile(c.pidFile(name))
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	if err == nil && !r.IsValid() {
		err = fmt.Errorf("%s identifies no process", c.pidFile(name))
	}
	return r, err
}

// running returns the record of a component that runs. It returns false while the component is being started, and for a
// stray, whose record could not be written.
func (c *Cluster) running(name string) (pidFile, bool) {
	if held, err := lock.Held(c.pidFile(name)); err != nil || !held {
		return pidFile{}, false
	}
	r, err := c.owner(name)
	return r, err == nil && r.IsRunning()
}

// pid returns the process number of a component, 0 when it does not run.
func (c *Cluster) pid(name string) int {
	if r, ok := c.running(name); ok {
		return r.PID
	}
	return 0
}

// PID returns the process number of a component: after its end, that of its last process.
func (c *Cluster) PID(name string) (int, error) {
	r, err := c.owner(name)
	return r.PID, err
}

// Signal sends a signal to a component that runs.
func (c *Cluster) Signal(name string, s os.Signal) error {
	r, err := c.owner(name)
	if err == nil {
		err = r.Signal(s)
	}
	if err != nil {
		return fmt.Errorf("signal %s: %w", name, err)
	}
	return nil
}

// Elsewhere returns an error when the cluster runs in a container or on a machine that shares the folder, or may do so.
func (c *Cluster) Elsewhere() error {
	for _, name := range Names() {
		r, err := c.owner(name)
		if err != nil || r.IsLocal() {
			continue
		}
		held, err := lock.Held(c.pidFile(name))
		if err != nil {
			return err
		}
		if held || !r.IsGone() {
			return fmt.Errorf("the local cluster in %s was started in another container or machine, %s (%s is process %d "+
				"of %s there): use it or end it there with %s, or remove the folder when %s does not exist any more",
				c.dir(), r.Host, name, r.PID, r.Namespace, c.Fixes.Remove, r.Host)
		}
	}
	return nil
}

// endUnknown ends the processes of this cluster that have no record. It changes nothing when the cluster is elsewhere.
func (c *Cluster) endUnknown() error {
	if err := c.Elsewhere(); err != nil {
		return err
	}
	if err := c.endStrays(); err != nil {
		return err
	}
	return c.checkHolders()
}

// checkHolders returns an error when a process that this process cannot see holds a .pid file. A process that is about
// to end, or is being started, holds its file for a moment.
func (c *Cluster) checkHolders() error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	var unknown error
	_ = poll(ctx, 20*time.Millisecond, func() error {
		unknown = c.unknownHolder()
		return unknown
	})
	return unknown
}

func (c *Cluster) unknownHolder() error {
	for _, name := range Names() {
		held, err := lock.Held(c.pidFile(name))
		if err != nil {
			return err
		}
		if _, ok := c.running(name); held && !ok {
			return fmt.Errorf("%s is held by a process that is not visible here, as one of a container that shares the "+
				"folder: use the local cluster or end it there with %s, or stop that container", c.pidFile(name), c.Fixes.Remove)
		}
	}
	return nil
}
