// Package migrate_test runs migrate.sh on an API server, and then does the step that the script promises to make safe:
// it removes v1 from the CRD.
package migrate_test

import (
	"os"
	"os/exec"
	"slices"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
	"example.com/operator-workshop/04-controller-runtime/internal/testenv"
	webv2 "example.com/operator-workshop/04-controller-runtime/versions/api/v2"
	"example.com/operator-workshop/04-controller-runtime/versions/server"
	"example.com/operator-workshop/04-controller-runtime/versions/versionstest"
)

func TestMigrate(t *testing.T) {
	ctrl.SetLogger(logr.Discard())
	c := versionstest.Start(t)
	c.Install(t, "1-serve")
	c.Convert(t)
	migrate(t, c) // there is nothing to move yet

	must(t, c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-a"}}))
	for _, namespace := range []string{"default", "team-a"} {
		must(t, c.Create(t.Context(), &webv1.MyWeb{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"},
			Spec: webv1.MyWebSpec{Image: "nginx", PageContentHTML: new("<p>" + namespace)}}))
	}
	before := list(t, c)
	c.Install(t, "2-store")
	migrate(t, c)
	migrate(t, c) // and again
	if stored := c.StoredVersions(t); !slices.Equal(stored, []string{"v2"}) {
		t.Fatalf("status.storedVersions is %v, want [v2]: the API server refuses a CRD without v1", stored)
	}

	removeV1(t, c)
	webs := &webv2.MyWebList{}
	if err := c.List(t.Context(), webs); err != nil {
		t.Fatalf("v1 is gone from the CRD, and MyWebs cannot be read any more: %v", err)
	}
	if diff := cmp.Diff(before, list(t, c)); diff != "" {
		t.Errorf("a migration changes the version in etcd, and nothing else (-before +after):\n%s", diff)
	}
}

func migrate(t *testing.T, c *versionstest.Cluster) {
	t.Helper()
	assets, err := testenv.Assets()
	must(t, err)
	cmd := exec.CommandContext(t.Context(), "bash", "migrate.sh")
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig, "PATH="+assets+":"+os.Getenv("PATH"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("migrate.sh ended with %v:\n%s", err, out)
	}
}

// list returns all MyWebs, without the fields that every write changes.
func list(t *testing.T, c *versionstest.Cluster) []webv2.MyWeb {
	t.Helper()
	webs := &webv2.MyWebList{}
	must(t, c.List(t.Context(), webs))
	for i := range webs.Items {
		webs.Items[i].ResourceVersion, webs.Items[i].ManagedFields = "", nil
	}
	return webs.Items
}

// removeV1 leaves v2 alone in the CRD, and no conversion.
func removeV1(t *testing.T, c *versionstest.Cluster) {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: server.CRD}}
	must(t, c.Patch(t.Context(), crd, client.RawPatch(types.JSONPatchType, []byte(`[
		{"op":"remove","path":"/spec/versions/0"},
		{"op":"replace","path":"/spec/conversion","value":{"strategy":"None"}}]`))))
	gomega.NewWithT(t).Eventually(func() bool { // the API server needs a moment
		err := c.List(t.Context(), &webv1.MyWebList{})
		return meta.IsNoMatchError(err) || client.IgnoreNotFound(err) == nil && err != nil
	}, "30s", "50ms").Should(gomega.BeTrue(), "v1 is still served")
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
