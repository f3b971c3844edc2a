package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// ErrNoLens means that the cluster runs without the lens.
var ErrNoLens = errors.New("the local cluster runs without the lens: `make up` starts it")

// A Cost has the median time of a request past the lens, and through the lens.
type Cost struct{ Direct, Through time.Duration }

// LensCost sends the given number of requests on each way, alternately, and returns their median times.
func (c *Cluster) LensCost(ctx context.Context, requests int) (Cost, error) {
	if err := c.readPorts(); err != nil {
		return Cost{}, err
	}
	if c.pid(Lens) == 0 {
		return Cost{}, ErrNoLens
	}
	ways := []string{c.api(""), c.address()}
	var clients []*http.Client
	for range ways {
		client, err := c.client()
		if err != nil {
			return Cost{}, err
		}
		clients = append(clients, client)
	}
	took := make([][]time.Duration, len(ways))
	for n := range requests + 10 {
		for i, way := range ways {
			begin := time.Now()
			if err := healthy(ctx, clients[i], way+"/api/v1/namespaces/default/configmaps/kube-root-ca.crt"); err != nil {
				return Cost{}, fmt.Errorf("measure the lens: %w", err)
			}
			if n >= 10 { // the first ones open the connections
				took[i] = append(took[i], time.Since(begin))
			}
		}
	}
	for _, some := range took {
		slices.Sort(some)
	}
	return Cost{took[0][requests/2], took[1][requests/2]}, nil
}
