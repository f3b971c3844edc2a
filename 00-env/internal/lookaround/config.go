package lookaround

import (
	"errors"
	"fmt"
	"os"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Timeout is how long one request may take, connecting included.
const Timeout = 10 * time.Second

// fixNoCluster ends each message about a cluster that cannot be found.
const fixNoCluster = "fix: `make up` in the repository root starts one and prints how to use it"

// Config finds the cluster of the file at path. Without a path it tries the file of KUBECONFIG, then the cluster that
// this program runs in, then ~/.kube/config. The error names the missing file or setting and the fix.
func Config(path string) (*rest.Config, error) {
	cfg, source, err := find(path)
	switch {
	case clientcmd.IsEmptyConfig(err):
		return nil, fmt.Errorf("%s names no cluster; %s", source, fixNoCluster)
	case err != nil:
		return nil, fmt.Errorf("%s cannot be used: %w; %s", source, err, fixNoCluster)
	}
	cfg.Timeout = Timeout
	return cfg, nil
}

// find returns the configuration and its source.
func find(path string) (cfg *rest.Config, source string, err error) {
	if path != "" {
		cfg, err = load(&clientcmd.ClientConfigLoadingRules{ExplicitPath: path})
		return cfg, "kubeconfig " + path, err
	}
	if list := os.Getenv(clientcmd.RecommendedConfigPathEnvVar); list != "" {
		cfg, err = load(clientcmd.NewDefaultClientConfigLoadingRules())
		return cfg, "KUBECONFIG=" + list, err
	}
	if cfg, err = rest.InClusterConfig(); !errors.Is(err, rest.ErrNotInCluster) {
		return cfg, "the service account of this pod", err
	}
	cfg, err = load(clientcmd.NewDefaultClientConfigLoadingRules())
	return cfg, "KUBECONFIG is not set and " + clientcmd.RecommendedHomeFile, err
}

func load(rules *clientcmd.ClientConfigLoadingRules) (*rest.Config, error) {
	rules.WarnIfAllMissing = false // Config returns its own error
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
}
