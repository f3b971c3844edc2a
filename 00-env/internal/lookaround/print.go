package lookaround

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode/utf8"
)

const (
	// width is the greatest length of a line in characters.
	width = 100
	// nameWidth is how many characters of a name a table shows: enough for each group of Kubernetes itself.
	nameWidth = 28
)

// environmentText explains each environment.
var environmentText = map[Environment]string{
	EnvironmentEnvtest: "envtest: an API server and its etcd, and nothing else.\n" +
		"Objects are checked and stored, but no controller acts on them and no pod is ever placed.",
	EnvironmentLocal: "local: a whole control plane with simulated nodes.\n" +
		"Objects go their full way; a pod is reported as Running, but no container exists.",
	EnvironmentReal: "a cluster with real kubelets, such as kind.\n" +
		"Containers run: pages are served and logs can be read.",
	EnvironmentNodeless: "a control plane without working nodes.\n" +
		"Controllers act on objects, but every pod stays Pending.",
}

// controllersText describes whether controllers work.
var controllersText = map[bool]string{
	true: "at work\nThe namespace default has its service account: a controller made it, no API server does.",
	false: "none\nThe namespace default has no service account: the controller that makes one is not there, " +
		"and\nwithout controllers no Deployment gets pods and nothing is garbage collected.",
}

// kubeletText describes the program that reports for a node.
var kubeletText = map[Kubelet]string{
	KubeletReal:      "real: it starts containers",
	KubeletSimulated: "simulated by kwok: it reports, and starts nothing",
	KubeletAbsent:    "absent: no kubelet reports, the node is only a record",
}

// groupText describes the purpose of each group of Kubernetes itself.
var groupText = map[string]string{
	"":                             "pods, services, nodes, namespaces: what all else is built on",
	"admissionregistration.k8s.io": "webhooks and policies that check or change each write",
	"apiextensions.k8s.io":         "new kinds: CustomResourceDefinition",
	"apiregistration.k8s.io":       "which server answers for which group",
	"apps":                         "Deployment, StatefulSet, DaemonSet: pods kept running",
	"authentication.k8s.io":        "who is asking",
	"authorization.k8s.io":         "may this user do that",
	"autoscaling":                  "replicas that follow the load",
	"batch":                        "Job and CronJob: pods that end",
	"certificates.k8s.io":          "certificates on request",
	"coordination.k8s.io":          "leases: node heartbeats, leader election",
	"discovery.k8s.io":             "which pods stand behind a Service",
	"events.k8s.io":                "what happened to an object",
	"flowcontrol.apiserver.k8s.io": "who waits when the API server is busy",
	"networking.k8s.io":            "Ingress and NetworkPolicy: who reaches which pod",
	"node.k8s.io":                  "ways to run a container on a node",
	"policy":                       "how many pods may be missing at a time",
	"rbac.authorization.k8s.io":    "who may do what",
	"resource.k8s.io":              "devices that pods ask for",
	"scheduling.k8s.io":            "which pods go first",
	"storage.k8s.io":               "kinds of volumes and who makes them",
	"storagemigration.k8s.io":      "stored objects rewritten in a newer version",
}

// Print writes the facts with a sentence on each, in lines of at most 100 characters.
func Print(w io.Writer, f Facts) error {
	var out bytes.Buffer
	item := func(title, text string) {
		fmt.Fprintf(&out, "%s: %s\n", title, strings.ReplaceAll(text, "\n", "\n  "))
	}
	item("Server", fmt.Sprintf("Kubernetes %s at %s\n", f.Version, f.Server)+
		"Everything in a cluster, this program too, is a client of the API server.")
	item("Cluster", environmentText[EnvironmentOf(f)])
	item("Controllers", controllersText[f.Controllers])
	item("Nodes", nodesTable(f.Nodes))
	item("API groups", groupsTable(f.Groups))
	for line := range strings.Lines(out.String()) {
		if _, err := fmt.Fprintln(w, clip(strings.TrimRight(line, " \n"), width)); err != nil {
			return err
		}
	}
	return nil
}

func nodesTable(nodes []Node) string {
	if len(nodes) == 0 {
		return "none\nA node is a machine that pods are placed on: here nothing can run."
	}
	rows := [][]string{{"NODE", "READY", "VERSION", "KUBELET"}}
	ready := 0
	for _, n := range nodes {
		word := "no"
		if n.Ready {
			word = "yes"
			ready++
		}
		rows = append(rows, []string{n.Name, word, n.Version, kubeletText[n.Kubelet]})
	}
	return fmt.Sprintf("%d of %d ready\n", ready, len(nodes)) +
		"A node is a machine that pods are placed on; its kubelet runs them and reports.\n" + table(rows)
}

func groupsTable(groups []Group) string {
	rows := [][]string{{"GROUP", "KINDS", "WHAT FOR"}}
	kinds, fromCRDs := 0, 0
	for _, g := range groups {
		name := g.Name
		if name == "" {
			name = "(core)"
		}
		rows = append(rows, []string{name, fmt.Sprint(g.Kinds), purpose(g)})
		kinds, fromCRDs = kinds+g.Kinds, fromCRDs+g.CRDs
	}
	return fmt.Sprintf("%s, %s, %s\n", counted(len(groups), "group"), counted(kinds, "kind"),
		counted(fromCRDs, "CRD")) +
		"A kind is a type of object with a schema. A CRD adds one to a running API server.\n" + table(rows)
}

// purpose describes the purpose of a group, or its origin.
func purpose(g Group) string {
	text := groupText[g.Name]
	switch {
	case g.CRDs > 0:
		text = fmt.Sprintf("added by %s: an operator may act on it", counted(g.CRDs, "CRD"))
	case text == "":
		text = "no CRD: a newer Kubernetes or another API server brings it"
	}
	if g.Unavailable {
		text = "DOES NOT ANSWER; " + text
	}
	return text
}

func counted(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// table aligns the cells of rows. Long names are cut.
func table(rows [][]string) string {
	var out strings.Builder
	columns := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(columns, clip(row[0], nameWidth)+"\t"+strings.Join(row[1:], "\t"))
	}
	_ = columns.Flush() // a strings.Builder takes everything
	return strings.TrimRight(out.String(), "\n")
}

// clip cuts a text to a number of characters. A text that was cut ends in "…".
func clip(text string, limit int) string {
	if utf8.RuneCountInString(text) <= limit {
		return text
	}
	return string([]rune(text)[:limit-1]) + "…"
}
