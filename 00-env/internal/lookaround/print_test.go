package lookaround

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func printed(t *testing.T, f Facts) string {
	t.Helper()
	var out bytes.Buffer
	if err := Print(&out, f); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestPrint(t *testing.T) {
	got := printed(t, Facts{
		Server: "https://127.0.0.1:6443", Version: "v1.37.1", Controllers: true,
		Nodes: []Node{
			{Name: "kind-control-plane", Ready: true, Kubelet: KubeletReal, Version: "v1.37.1"},
			{Name: "extra", Kubelet: KubeletAbsent},
		},
		Groups: []Group{{Name: "", Kinds: 17}, {Name: "example.com", Kinds: 1, CRDs: 1},
			{Name: "metrics.k8s.io", Unavailable: true}},
	})
	want := `Server: Kubernetes v1.37.1 at https://127.0.0.1:6443
  Everything in a cluster, this program too, is a client of the API server.
Cluster: a cluster with real kubelets, such as kind.
  Containers run: pages are served and logs can be read.
Controllers: at work
  The namespace default has its service account: a controller made it, no API server does.
Nodes: 1 of 2 ready
  A node is a machine that pods are placed on; its kubelet runs them and reports.
  NODE                READY  VERSION  KUBELET
  kind-control-plane  yes    v1.37.1  real: it starts containers
  extra               no              absent: no kubelet reports, the node is only a record
API groups: 3 groups, 18 kinds, 1 CRD
  A kind is a type of object with a schema. A CRD adds one to a running API server.
  GROUP           KINDS  WHAT FOR
  (core)          17     pods, services, nodes, namespaces: what all else is built on
  example.com     1      added by 1 CRD: an operator may act on it
  metrics.k8s.io  0      DOES NOT ANSWER; no CRD: a newer Kubernetes or another API server brings it
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestEveryEnvironmentIsExplained(t *testing.T) {
	for environment, test := range map[Environment]struct {
		nodes       []Node
		controllers bool
		want        string
	}{
		EnvironmentEnvtest:  {nil, false, "Cluster: envtest: "},
		EnvironmentNodeless: {nil, true, "Cluster: a control plane without working nodes."},
		EnvironmentLocal:    {[]Node{{Kubelet: KubeletSimulated}}, true, "Cluster: local: "},
		EnvironmentReal:     {[]Node{{Kubelet: KubeletReal}}, true, "Cluster: a cluster with real kubelets"},
	} {
		t.Run(string(environment), func(t *testing.T) {
			got := printed(t, Facts{Nodes: test.nodes, Controllers: test.controllers})
			if !strings.Contains(got, "\n"+test.want) {
				t.Errorf("%q is missing in:\n%s", test.want, got)
			}
			if strings.Contains(got, "…") {
				t.Errorf("a sentence is too long for its line:\n%s", got)
			}
		})
	}
}

func TestNoLineIsLongerThanAHundredCharacters(t *testing.T) {
	long := strings.Repeat("ä", 253)
	f := Facts{Server: "https://" + long, Version: "v1",
		Nodes:  []Node{{Name: long, Version: "v1.37.1", Kubelet: KubeletReal}},
		Groups: []Group{{Name: long, CRDs: 1000}}}
	for name := range groupText {
		f.Groups = append(f.Groups, Group{Name: name, Kinds: 10})
	}
	for line := range strings.Lines(printed(t, f)) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width {
			t.Errorf("%d characters: %s", n, line)
		}
		if strings.Contains(line, "…") && !strings.Contains(line, "ä") {
			t.Errorf("a sentence is too long for its line: %s", line)
		}
	}
}
