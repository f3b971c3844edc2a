package lookaround

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// controllersText describes whether controllers work.
var controllersText = map[bool]string{
	true: "at work\nThe namespace default has its service account: a controller made it, no API server does.",
	false: "none\nThe namespace default has no service account, because the controller that makes it is not there.\n" +
		"Without controllers no Deployment gets pods, and no object is garbage collected.",
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

// Print writes the facts, with a sentence on each.
func Print(w io.Writer, f *Facts) error {
	text := item("Server", fmt.Sprintf("Kubernetes %s at %s\n"+
		"Everything in a cluster, this program too, is a client of the API server.", f.Version, f.Server)) +
		item("Cluster", string(f.Environment())) +
		item("Controllers", controllersText[f.Controllers]) +
		item("Nodes", nodesText(f.Nodes)) +
		item("API groups", groupsText(f.Groups))
	if f.Unavailable != nil {
		text += item("No answer", f.Unavailable.Error())
	}
	_, err := io.WriteString(w, text)
	return err
}

// item returns a title and a text, whose further lines are indented.
func item(title, text string) string {
	return fmt.Sprintf("%s: %s\n", title, strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  "))
}

func nodesText(nodes []corev1.Node) string {
	if len(nodes) == 0 {
		return "none\nA node is a machine that pods are placed on: here nothing can run."
	}
	ready, rows := 0, "NODE\tREADY\tVERSION\tKUBELET\n"
	for _, node := range nodes {
		word := "no"
		for _, condition := range node.Status.Conditions {
			if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
				word = "yes"
				ready++
			}
		}
		rows += fmt.Sprintf("%s\t%s\t%s\t%s\n", node.Name, word, node.Status.NodeInfo.KubeletVersion, KubeletOf(node))
	}
	return fmt.Sprintf("%d of %d ready\n", ready, len(nodes)) +
		"A node is a machine that pods are placed on; its kubelet runs them and reports.\n" + table(rows)
}

func groupsText(groups map[string]sets.Set[string]) string {
	kinds, rows := 0, "GROUP\tKINDS\tWHAT FOR\n"
	for _, group := range sets.List(sets.KeySet(groups)) {
		text, known := groupText[group]
		if !known {
			text = "added by a CRD, or by another API server"
		}
		if group == "" {
			rows += "(core)"
		}
		kinds += groups[group].Len()
		rows += fmt.Sprintf("%s\t%d\t%s\n", group, groups[group].Len(), text)
	}
	return fmt.Sprintf("%d groups, %d kinds\n", len(groups), kinds) +
		"A kind is a type of object with a schema. A CRD adds one to a running API server.\n" + table(rows)
}

// table aligns the cells of rows.
func table(rows string) string {
	var out strings.Builder
	columns := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	_, _ = io.WriteString(columns, rows) // a strings.Builder takes everything
	_ = columns.Flush()
	return out.String()
}
