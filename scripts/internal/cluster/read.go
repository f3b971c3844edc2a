package cluster

import (
	"context"
	"net/http"
)

// A Reader reads objects of the cluster as its administrator, past the lens, because the reads of a view are not part
// of the loop.
type Reader struct {
	client *http.Client
	server string
}

// Reader returns a reader of the running cluster. The caller closes it.
func (c *Cluster) Reader() (*Reader, error) {
	if running, _ := c.Running(); running == 0 {
		return nil, ErrNoCluster
	}
	if err := c.readPorts(); err != nil {
		return nil, err
	}
	client, err := c.client()
	if err != nil {
		return nil, err
	}
	return &Reader{client, c.api("")}, nil
}

// Get returns the API server's answer to a GET of a path. A code other than 2xx is an error.
func (r *Reader) Get(ctx context.Context, path string) ([]byte, error) {
	return get(ctx, r.client, r.server+path)
}

// Close ends the reader's connections.
func (r *Reader) Close() { r.client.CloseIdleConnections() }
