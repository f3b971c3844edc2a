// Package versionstest gives tests an API server with both versions of MyWeb, and the webhook that converts them.
package versionstest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onsi/gomega"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/operator-workshop/04-controller-runtime/internal/testenv"
	webv2 "example.com/operator-workshop/04-controller-runtime/versions/api/v2"
	"example.com/operator-workshop/04-controller-runtime/versions/server"
)

// A Cluster is an API server and its administrator.
type Cluster struct {
	Config     *rest.Config
	Kubeconfig string
	Port       int // the port of the webhook
	client.Client

	config string // the folder with the overlays
}

// Start starts an API server, without MyWebs.
func Start(t *testing.T) *Cluster {
	t.Helper()
	c := &Cluster{Config: testenv.NewAPIServer(t), Port: testenv.FreePort(t),
		config: filepath.Join(folder(t), "..", "config")}
	c.Kubeconfig = testenv.WriteKubeconfig(t, c.Config, "default")
	quiet := rest.CopyConfig(c.Config)
	quiet.WarningHandler = rest.NoWarnings{} // v1 is deprecated
	err := errors.Join(server.AddToScheme(scheme.Scheme), apiextensionsv1.AddToScheme(scheme.Scheme))
	if err != nil {
		t.Fatal(err)
	}
	if c.Client, err = client.New(quiet, client.Options{}); err != nil {
		t.Fatal(err)
	}
	return c
}

// folder is that of this package. An exercise calls the package from another folder.
func folder(t *testing.T) string {
	t.Helper()
	const path = "example.com/operator-workshop/04-controller-runtime/versions/versionstest"
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.Dir}}", path).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(dir))
}

// Install applies the CRD of an overlay of config, such as 1-serve, with the port of this test.
func (c *Cluster) Install(t *testing.T, overlay string) {
	t.Helper()
	file := c.manifest(t, overlay)
	c.Kubectl(t, "apply", "-f", file)
	c.Kubectl(t, "wait", "--for=condition=Established", "--timeout=2m", "-f", file)
}

// Replace replaces the CRD by that of an overlay, which has no authority of the webhook.
func (c *Cluster) Replace(t *testing.T, overlay string) {
	t.Helper()
	c.Kubectl(t, "replace", "-f", c.manifest(t, overlay))
}

// manifest returns a file with the CRD of an overlay.
func (c *Cluster) manifest(t *testing.T, overlay string) string {
	t.Helper()
	crd := c.Kubectl(t, "kustomize", filepath.Join(c.config, overlay))
	file := filepath.Join(t.TempDir(), "crd.yaml")
	err := os.WriteFile(file, []byte(strings.Replace(crd, ":9443/", fmt.Sprintf(":%d/", c.Port), 1)), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// Kubectl runs kubectl as the administrator.
func (c *Cluster) Kubectl(t *testing.T, args ...string) string {
	t.Helper()
	assets, err := testenv.Assets()
	if err != nil {
		t.Fatal(err)
	}
	args = append([]string{"--kubeconfig", c.Kubeconfig}, args...)
	out, err := exec.CommandContext(t.Context(), filepath.Join(assets, "kubectl"), args...).CombinedOutput()
	if err != nil {
		t.Fatalf("kubectl %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// Convert runs the webhook until the test ends. It returns when the API server uses it.
func (c *Cluster) Convert(t *testing.T) {
	t.Helper()
	testenv.Run(t, func(ctx context.Context) error {
		return server.Run(ctx, c.Config, server.Options{Host: "127.0.0.1", Port: c.Port})
	})
	c.AwaitConversion(t)
}

// AwaitConversion returns when the API server converts in both directions.
func (c *Cluster) AwaitConversion(t *testing.T) {
	t.Helper()
	// The API server converts a created object to the storage version, so one of the two requests needs the webhook.
	gomega.NewWithT(t).Eventually(func(g gomega.Gomega) {
		for _, version := range []string{"v1", "v2"} {
			web := &unstructured.Unstructured{Object: map[string]any{"kind": "MyWeb",
				"apiVersion": webv2.SchemeGroupVersion.Group + "/" + version,
				"metadata":   map[string]any{"namespace": "default", "name": "probe"},
				"spec":       map[string]any{"image": "nginx:1.29"}}}
			g.Expect(c.Create(t.Context(), web, client.DryRunAll)).To(gomega.Succeed())
		}
	}, "30s", "50ms").Should(gomega.Succeed())
}

// StoredVersions are those in which the CRD says that objects may be stored.
func (c *Cluster) StoredVersions(t *testing.T) []string {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: server.CRD}, crd); err != nil {
		t.Fatal(err)
	}
	return crd.Status.StoredVersions
}
