package lookaround

import (
	"context"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// crdResource is read as metadata only: Look needs only the names, and schemas are large.
var crdResource = schema.GroupVersionResource{
	Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
}

// Look gathers the facts about the cluster that cfg names. It stops at the first request that fails: the
// error names the request, the reason and the fix. Each request may take cfg.Timeout.
func Look(ctx context.Context, cfg *rest.Config) (Facts, error) {
	f := Facts{Server: cfg.Host}
	clients, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return f, fmt.Errorf("make a client for %s: %w", cfg.Host, err)
	}
	meta, err := metadata.NewForConfig(cfg)
	if err != nil {
		return f, fmt.Errorf("make a client for %s: %w", cfg.Host, err)
	}
	server := clients.DiscoveryClient
	version, err := server.ServerVersionWithContext(ctx)
	if err != nil {
		return f, explain("read the version", cfg, err)
	}
	f.Version = version.GitVersion
	nodes, err := clients.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return f, explain("list the nodes", cfg, err)
	}
	f.Nodes = nodesOf(nodes.Items)
	if f.Controllers, err = controllersWork(ctx, clients); err != nil {
		return f, explain("look for a service account", cfg, err)
	}
	crds, err := meta.Resource(crdResource).List(ctx, metav1.ListOptions{})
	if err != nil {
		return f, explain("list the CRDs", cfg, err)
	}
	var names []string
	for _, crd := range crds.Items {
		names = append(names, crd.Name)
	}
	_, resources, err := server.ServerGroupsAndResourcesWithContext(ctx)
	unavailable, partly := discovery.GroupDiscoveryFailedErrorGroups(err)
	if err != nil && !partly {
		return f, explain("list the API groups", cfg, err)
	}
	f.Groups = groupsOf(resources, slices.Collect(maps.Keys(unavailable)), names)
	return f, nil
}

// controllersWork looks for an object that every controller manager creates: the service account
// "default" in each namespace.
func controllersWork(ctx context.Context, clients kubernetes.Interface) (bool, error) {
	_, err := clients.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}
