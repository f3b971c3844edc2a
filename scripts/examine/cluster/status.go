package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"text/tabwriter"
)

// ErrNoCluster means that no local cluster was made in this folder.
var ErrNoCluster = errors.New("there is no local cluster here")

func (c *Cluster) noCluster() error { return fmt.Errorf("%w: %s", ErrNoCluster, c.Fixes.Missing) }

// Started returns ErrNoCluster when no component runs.
func (c *Cluster) Started() error {
	if running, _ := c.Running(); running == 0 {
		return c.noCluster()
	}
	return nil
}

// Running returns how many components of the cluster run, and how many components the cluster has.
func (c *Cluster) Running() (running, all int) {
	for _, p := range c.components() {
		if c.pid(p.name) != 0 {
			running++
		}
	}
	return running, len(c.components())
}

// Ended returns an error about the first component that does not run, with the last line of its log.
func (c *Cluster) Ended() error {
	for _, p := range c.components() {
		if c.pid(p.name) == 0 {
			words := c.lastWords(p.name)
			return fmt.Errorf("%s does not run, the last line of its log: %s", p.name, words[strings.LastIndex(words, "\n")+1:])
		}
	}
	return nil
}

// Status prints the running components and the folders of the cluster. It returns an error when the cluster is missing
// or a part of it does not work.
func (c *Cluster) Status(ctx context.Context, w io.Writer) error {
	if err := c.Elsewhere(); err != nil {
		return err
	}
	if strays := c.strays(); len(strays) > 0 {
		return fmt.Errorf("%d processes belong to a cluster whose files were removed, process %d is one: "+
			"%s ends them", len(strays), strays[0].PID, c.Fixes.Remove)
	}
	if err := c.checkHolders(); err != nil {
		return err
	}
	if err := c.readPorts(); err != nil {
		return err
	}
	client, err := c.client()
	if err != nil {
		return fmt.Errorf("the certificates are damaged (%w): %s", err, c.Fixes.Damaged)
	}
	broken := 0
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "COMPONENT\tPROCESS\tADDRESS\tSTATE")
	for _, p := range c.components() {
		process, state := "-", "stopped"
		if pid := c.pid(p.name); pid != 0 {
			process, state = fmt.Sprint(pid), "healthy"
			if err := c.works(ctx, client, p); err != nil {
				state = "not healthy"
			}
		}
		if state != "healthy" {
			broken++
		}
		address := "-"
		if len(p.ports) > 0 {
			address = fmt.Sprintf("%s:%d", loopback, c.ports[p.ports[0]])
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", p.name, process, address, state)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if ready, total, err := c.nodes(ctx, client); err == nil {
		fmt.Fprintf(w, "\nnodes       %d of %d ready (simulated by kwok: no container runs)\n", ready, total)
	}
	fmt.Fprintf(w, "kubeconfig  %s\naudit log   %s\nlogs        %s\n",
		c.Kubeconfig(), c.AuditLog(), filepath.Join(c.dir(), "logs"))
	if c.hasLens() {
		fmt.Fprintf(w, "ledger      %s\n", c.Ledger())
	}
	if broken > 0 {
		return fmt.Errorf("%d of %d components do not work: %s", broken, len(c.components()), c.Fixes.Damaged)
	}
	return nil
}
