// Package lookaround asks a cluster what it is, as any client of the API server can. It sends requests (this file), draws
// conclusions (facts.go) and prints them (print.go).
package lookaround

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Timeout is how long one request may take, connecting included.
const Timeout = 10 * time.Second

// Config finds a cluster by the file at path. Without a path it tries the files of KUBECONFIG, then ~/.kube/config, then
// the service account of the pod that this program runs in.
func Config(path string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = path
	rules.WarnIfAllMissing = false // the error says it
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, fmt.Errorf("no cluster is named in %s", strings.Join(rules.GetLoadingPrecedence(), ", "))
	}
	if err != nil {
		return nil, fmt.Errorf("find the cluster: %w", err)
	}
	cfg.Timeout = Timeout
	return cfg, nil
}

// Look gathers the facts about a cluster. It stops at the first request that fails.
func Look(ctx context.Context, cfg *rest.Config) (*Facts, error) {
	clients, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("make a client for %s: %w", cfg.Host, err)
	}
	version, err := clients.DiscoveryClient.ServerVersionWithContext(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the version of %s: %w", cfg.Host, err)
	}
	nodes, err := clients.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list the nodes of %s: %w", cfg.Host, err)
	}
	controllers, err := controllersWork(ctx, clients)
	if err != nil {
		return nil, fmt.Errorf("get a service account of %s: %w", cfg.Host, err)
	}
	_, resources, err := clients.DiscoveryClient.ServerGroupsAndResourcesWithContext(ctx)
	if err != nil && len(resources) == 0 {
		return nil, fmt.Errorf("list the API groups of %s: %w", cfg.Host, err)
	}
	return &Facts{Server: cfg.Host, Version: version.GitVersion, Controllers: controllers, Nodes: nodes.Items,
		Groups: kindsOf(resources), Unavailable: err}, nil
}

// controllersWork looks for an object that every controller manager creates: the service account "default" in each
// namespace.
func controllersWork(ctx context.Context, clients kubernetes.Interface) (bool, error) {
	_, err := clients.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// kindsOf returns the kinds of each API group, in all its versions.
func kindsOf(resources []*metav1.APIResourceList) map[string]sets.Set[string] {
	groups := map[string]sets.Set[string]{}
	for _, list := range resources {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue // not an API group that a client could use
		}
		if groups[version.Group] == nil {
			groups[version.Group] = sets.New[string]()
		}
		for _, resource := range list.APIResources {
			if !strings.Contains(resource.Name, "/") { // pods/log is a subresource, not a kind
				groups[version.Group].Insert(resource.Kind)
			}
		}
	}
	return groups
}
