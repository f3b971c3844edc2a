package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
)

// A Reader reads objects of the cluster as its administrator, past the lens, because the reads of a view are not part
// of the loop.
type Reader struct {
	cluster *Cluster
	client  *http.Client
}

// ErrNoAnswer means that the cluster was made, but its API server does not answer.
var ErrNoAnswer = errors.New("the API server does not answer")

// ErrLensEnded means that the process of the lens has ended.
var ErrLensEnded = errors.New("the lens does not run, so programs do not reach the API server")

// Reader returns a reader of the running cluster. The caller closes it.
func (c *Cluster) Reader() (*Reader, error) {
	if err := c.Started(); err != nil {
		return nil, err
	}
	if err := c.readPorts(); err != nil {
		return nil, err
	}
	client, err := c.client()
	if err != nil {
		return nil, err
	}
	return &Reader{c, client}, nil
}

// Get returns the API server's answer to a GET of a path. A code other than 2xx is an error: a missing object is
// fs.ErrNotExist. ErrNoAnswer is returned when the API server does not answer, or answers that it cannot work.
func (r *Reader) Get(ctx context.Context, path string) ([]byte, error) {
	body, err := get(ctx, r.client, r.cluster.api(path))
	var unreachable *url.Error
	var answered responseError
	if errors.As(err, &unreachable) || errors.As(err, &answered) && answered.code >= http.StatusInternalServerError {
		return nil, fmt.Errorf("%w: %s", ErrNoAnswer, r.cluster.Fixes.Damaged)
	}
	return body, err
}

// Lens returns ErrLensEnded when the cluster has a lens that does not run.
func (r *Reader) Lens() error {
	if r.cluster.hasLens() && r.cluster.pid(Lens) == 0 {
		return fmt.Errorf("%w: %s", ErrLensEnded, r.cluster.Fixes.Damaged)
	}
	return nil
}

// Close ends the reader's connections.
func (r *Reader) Close() { r.client.CloseIdleConnections() }
