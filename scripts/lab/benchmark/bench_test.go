package benchmark

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"example.com/operator-workshop/scripts/lab/myweb/impl"
)

// TestRun runs a small benchmark of a real operator, that of chapter 04: every part works, and its results are
// plausible.
func TestRun(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts clusters")
	}
	root, err := impl.Here()
	if err != nil {
		t.Fatal(err)
	}
	impls, err := impl.Choose(root, "04")
	if err != nil {
		t.Fatal(err)
	}
	if impls[0], err = impls[0].Build(t.Context(), t.TempDir()); err != nil {
		t.Fatal(err)
	}
	r, err := Run(t.Context(), Options{Root: root, Implementations: impls, Memory: []int{0, 20}, Report: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	r.Print(&out)
	t.Log("\n" + out.String())

	m := r.Implementations[0]
	checkCounts(t, m.Counts)
	checkMeasures(t, m)
}

func checkCounts(t *testing.T, counts []Count) {
	t.Helper()
	phases := map[string]Count{}
	for _, c := range counts {
		phases[c.Phase] = c
	}
	wanted := map[string]int{"apply configmaps": counted, "apply deployments.apps": counted, "apply services": counted,
		"update mywebs.operator.k8s-summit.org/status": 2 * counted}
	if diff := cmp.Diff(wanted, phases["creation"].Requests); diff != "" && phases["creation"].Conflicts == 0 {
		t.Errorf("the requests of a creation (-want +got):\n%s", diff)
	}
	if n := len(phases["steady state"].Requests); n > 0 {
		t.Errorf("requests in steady state: %+v", phases["steady state"])
	}
	for kind := range maps.Keys(phases["restart"].Requests) {
		if !strings.HasPrefix(kind, "watch ") && !strings.HasPrefix(kind, "get /api") {
			t.Errorf("a restart over what is served asks for %s", kind)
		}
	}
}

func checkMeasures(t *testing.T, m Measured) {
	t.Helper()
	if len(m.Memory) != 2 || m.Memory[1].MyWebs != 20 || m.Memory[1].RSS == 0 {
		t.Errorf("memory: %+v", m.Memory)
	}
	if s := m.Static; s.BinaryBytes == 0 || s.Written == 0 || s.Files == 0 || s.Permissions == "" {
		t.Errorf("static: %+v", s)
	}
}
