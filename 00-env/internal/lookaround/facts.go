// Package lookaround looks at a cluster and explains what it sees. It sends requests (look.go), draws
// conclusions (this file) and prints (print.go). The last two depend only on the facts, not on a cluster.
package lookaround

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Facts are the facts about a cluster that a client can observe.
type Facts struct {
	// Server is the URL of the API server.
	Server string
	// Version is the version that the API server states, such as v1.37.1.
	Version string
	// Controllers reports whether a controller manager has been at work.
	Controllers bool
	// Nodes are the cluster's nodes, by name.
	Nodes []Node
	// Groups are the API groups that the server offers, by name; the core group comes first.
	Groups []Group
}

// Node is a machine on which pods can run, or a simulated one.
type Node struct {
	Name    string
	Ready   bool
	Kubelet Kubelet
	// Version is the version that the kubelet states about itself; "" when no kubelet has reported yet.
	Version string
}

// Kubelet is the program that reports for a node.
type Kubelet string

const (
	// KubeletReal starts containers on a machine.
	KubeletReal Kubelet = "real"
	// KubeletSimulated is kwok: it writes what a kubelet would report, and starts nothing.
	KubeletSimulated Kubelet = "simulated"
	// KubeletAbsent means that no program has reported for the node: it is only an object.
	KubeletAbsent Kubelet = "absent"
)

// Group is an API group, such as apps.
type Group struct {
	// Name is "" for the core group.
	Name string
	// Kinds counts the different kinds over all versions that are served.
	Kinds int
	// CRDs counts the CustomResourceDefinitions of the group.
	CRDs int
	// Unavailable reports that another server, which did not answer, serves a part of the group.
	Unavailable bool
}

// Environment is one of the ways to have a cluster, derived from the facts.
type Environment string

const (
	// EnvironmentEnvtest is an API server with its etcd alone.
	EnvironmentEnvtest Environment = "envtest"
	// EnvironmentLocal is a control plane whose nodes are all simulated.
	EnvironmentLocal Environment = "local"
	// EnvironmentReal is a cluster with kubelets that start containers: kind, or any other.
	EnvironmentReal Environment = "real"
	// EnvironmentNodeless is a control plane with controllers, but without a node for which a program reports.
	EnvironmentNodeless Environment = "nodeless"
)

const (
	// kwokAnnotation marks the nodes that kwok takes care of.
	kwokAnnotation = "kwok.x-k8s.io/node"
	// kwokPrefix is how kwok's version starts where a node states the version of its kubelet.
	kwokPrefix = "kwok-"
)

// EnvironmentOf derives the environment from the facts. It depends on the programs that report for the nodes, and
// without such nodes on whether controllers work.
func EnvironmentOf(f Facts) Environment {
	count := map[Kubelet]int{}
	for _, n := range f.Nodes {
		count[n.Kubelet]++
	}
	switch real, simulated := count[KubeletReal], count[KubeletSimulated]; {
	case real > 0:
		return EnvironmentReal
	case simulated > 0:
		return EnvironmentLocal
	case f.Controllers:
		return EnvironmentNodeless
	default:
		return EnvironmentEnvtest
	}
}

// nodesOf returns the facts about nodes, sorted by name.
func nodesOf(nodes []corev1.Node) []Node {
	var result []Node
	for _, n := range nodes {
		node := Node{Name: n.Name, Version: n.Status.NodeInfo.KubeletVersion, Kubelet: kubeletOf(n)}
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NodeReady {
				node.Ready = c.Status == corev1.ConditionTrue
			}
		}
		result = append(result, node)
	}
	slices.SortFunc(result, func(a, b Node) int { return cmp.Compare(a.Name, b.Name) })
	return result
}

// kubeletOf returns the program that reports for a node, by the version that this program sets. kwok does not change a
// version that was set before, so the annotation that assigns the node to kwok counts as well.
func kubeletOf(n corev1.Node) Kubelet {
	version := n.Status.NodeInfo.KubeletVersion
	switch {
	case version == "":
		return KubeletAbsent
	case strings.HasPrefix(version, kwokPrefix) || n.Annotations[kwokAnnotation] != "":
		return KubeletSimulated
	default:
		return KubeletReal
	}
}

// groupsOf counts the kinds and the CRDs of each group, sorted by name. A CRD is named
// <plural>.<group>: the API server refuses any other name.
func groupsOf(lists []*metav1.APIResourceList, unavailable []schema.GroupVersion, crds []string) []Group {
	kinds := map[string]map[string]bool{}
	add := func(group string) {
		if kinds[group] == nil {
			kinds[group] = map[string]bool{}
		}
	}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue // not an API group that a client could use
		}
		add(gv.Group)
		for _, r := range list.APIResources {
			if !strings.Contains(r.Name, "/") { // a subresource, such as pods/log, is not a separate kind
				kinds[gv.Group][r.Kind] = true
			}
		}
	}
	missing, defined := map[string]bool{}, map[string]int{}
	for _, gv := range unavailable {
		add(gv.Group)
		missing[gv.Group] = true
	}
	for _, name := range crds {
		_, group, _ := strings.Cut(name, ".")
		defined[group]++
	}
	var result []Group
	for name, k := range kinds {
		result = append(result, Group{Name: name, Kinds: len(k), CRDs: defined[name], Unavailable: missing[name]})
	}
	slices.SortFunc(result, func(a, b Group) int { return cmp.Compare(a.Name, b.Name) })
	return result
}
