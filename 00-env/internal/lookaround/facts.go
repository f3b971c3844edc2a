package lookaround

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Facts are what a client can observe of a cluster.
type Facts struct {
	// Server is the URL of the API server, Version the version that it states, such as v1.37.1.
	Server, Version string
	// Controllers reports whether a controller manager has been at work.
	Controllers bool
	Nodes       []corev1.Node
	// Groups has the kinds of each API group. The core group is "".
	Groups map[string]sets.Set[string]
	// Unavailable names the groups whose server did not answer, or is nil.
	Unavailable error
}

// A Kubelet is the program that reports for a node.
type Kubelet string

const (
	// KubeletReal starts containers on a machine.
	KubeletReal Kubelet = "real: it starts containers"
	// KubeletSimulated is kwok: it writes what a kubelet would report.
	KubeletSimulated Kubelet = "simulated by kwok: it reports, and starts nothing"
	// KubeletAbsent means that no program has reported for the node.
	KubeletAbsent Kubelet = "absent: no kubelet reports, the node is only an object"
)

// KubeletOf returns the program that reports for a node. The program states its version. kwok does not change a version
// that was there before, so the annotation that assigns the node to kwok counts as well.
func KubeletOf(node corev1.Node) Kubelet {
	version := node.Status.NodeInfo.KubeletVersion
	switch {
	case version == "":
		return KubeletAbsent
	case strings.HasPrefix(version, "kwok-") || node.Annotations["kwok.x-k8s.io/node"] != "":
		return KubeletSimulated
	default:
		return KubeletReal
	}
}

// An Environment is one of the ways to have a cluster.
type Environment string

const (
	// EnvironmentEnvtest is an API server with its etcd alone.
	EnvironmentEnvtest Environment = "envtest: an API server and its etcd, and nothing else.\n" +
		"Objects are checked and stored, but no controller acts on them, and no pod is placed."
	// EnvironmentLocal is a control plane whose nodes are all simulated.
	EnvironmentLocal Environment = "local: a whole control plane with simulated nodes.\n" +
		"Controllers act on objects; a pod is reported as Running, but no container exists."
	// EnvironmentReal is a cluster with kubelets that start containers: kind, or any other.
	EnvironmentReal Environment = "a cluster with real kubelets, such as kind.\n" +
		"Containers run: pages are served, and logs can be read."
	// EnvironmentNodeless is a control plane with controllers, but without a node for which a program reports.
	EnvironmentNodeless Environment = "a control plane without working nodes.\n" +
		"Controllers act on objects, but every pod stays Pending."
)

// Environment concludes from the programs that report for the nodes, and from the controllers, what the cluster is.
func (f *Facts) Environment() Environment {
	kubelets := sets.New[Kubelet]()
	for _, node := range f.Nodes {
		kubelets.Insert(KubeletOf(node))
	}
	switch {
	case kubelets.Has(KubeletReal):
		return EnvironmentReal
	case kubelets.Has(KubeletSimulated):
		return EnvironmentLocal
	case f.Controllers:
		return EnvironmentNodeless
	default:
		return EnvironmentEnvtest
	}
}
