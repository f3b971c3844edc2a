package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
)

func (c *Cluster) portsFile() string { return filepath.Join(c.dir(), "ports.json") }

// readPorts loads the ports that Up chose.
func (c *Cluster) readPorts() error {
	data, err := os.ReadFile(c.portsFile())
	if errors.Is(err, os.ErrNotExist) {
		return c.noCluster()
	}
	if err == nil {
		err = json.Unmarshal(data, &c.ports)
	}
	if err != nil {
		return fmt.Errorf("%s is damaged (%w): %s", c.portsFile(), err, c.Fixes.Damaged)
	}
	return nil
}

// choosePorts loads the ports of this cluster. When another program took a port while its component did not run,
// choosePorts replaces that port; then all components restart, because each component knows the ports of others.
func (c *Cluster) choosePorts() error {
	if err := c.readPorts(); err != nil {
		clear(c.ports) // missing or half-written: chosen anew
	}
	var reserved []net.Listener // held until all are chosen, so that no two are the same
	defer func() {
		for _, l := range reserved {
			l.Close()
		}
	}()
	for _, p := range c.components() {
		for _, name := range p.ports {
			old := c.ports[name]
			if old != 0 && (c.pid(p.name) != 0 || isFree(old)) {
				continue
			}
			l, err := listenSomewhere()
			if err != nil {
				return fmt.Errorf("find a free port on %s: %w", loopback, err)
			}
			reserved = append(reserved, l)
			c.ports[name] = l.Addr().(*net.TCPAddr).Port
			if old != 0 {
				c.report("port %d of %s was taken by another program, moved to %d", old, p.name, c.ports[name])
			}
		}
	}
	if len(reserved) == 0 {
		return nil
	}
	data, err := json.MarshalIndent(c.ports, "", "  ")
	if err != nil {
		return err
	}
	return c.replaceFile(c.portsFile(), append(data, '\n'))
}

// lostPort reports whether another program has a port of a component that does not run.
func (c *Cluster) lostPort() bool {
	return slices.ContainsFunc(c.components(), func(p component) bool {
		return c.pid(p.name) == 0 && slices.ContainsFunc(p.ports, func(name string) bool { return !isFree(c.ports[name]) })
	})
}

// listenSomewhere takes a port below the ports that systems give to outgoing connections (from 32768 on Linux, from
// 49152 on macOS): a connection may take one of those ports whenever the cluster does not run.
func listenSomewhere() (l net.Listener, err error) {
	for range 100 {
		if l, err = net.Listen("tcp", fmt.Sprintf("%s:%d", loopback, 20000+rand.IntN(10000))); err == nil {
			return l, nil
		}
	}
	return nil, err
}

func isFree(port int) bool {
	l, err := net.Listen("tcp", fmt.Sprintf("%s:%d", loopback, port))
	if err != nil {
		return false
	}
	return l.Close() == nil
}
