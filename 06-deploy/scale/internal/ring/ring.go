// Package ring runs the sharder of kubernetes-controller-sharding beside an API server of the tests. In a cluster, the
// manifests of that project deploy it.
package ring

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	shardingv1alpha1 "github.com/timebertt/kubernetes-controller-sharding/pkg/apis/sharding/v1alpha1"
)

const (
	sharder = "github.com/timebertt/kubernetes-controller-sharding/cmd/sharder"
	// address is fixed in the sharder, so only one can run on a machine.
	address = "127.0.0.1:9443"
)

// Name is the name of the ring of all MyWebs.
const Name = "myweb"

// Build compiles the sharder into a folder.
func Build(ctx context.Context, dir string) (program string, err error) {
	program = filepath.Join(dir, "sharder")
	out, err := exec.CommandContext(ctx, "go", "build", "-o", program, sharder).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build the sharder: %w\n%s", err, out)
	}
	return program, nil
}

//go:generate sh -c "cat $(go list -m -f {{.Dir}} github.com/timebertt/kubernetes-controller-sharding)/config/crds/sharding.timebertt.dev_controllerrings.yaml >../../config/ring/sharding.timebertt.dev_controllerrings.yaml"

// CRD is the path of the CRD of ControllerRings in the folder of this module.
const CRD = "config/ring/sharding.timebertt.dev_controllerrings.yaml"

// Start starts a sharder for the ring of all MyWebs. Its files are in dir.
func Start(ctx context.Context, c client.Client, program, kubeconfig, dir string) (*exec.Cmd, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("the sharder needs the address %s: %w", address, err)
	}
	_ = l.Close()
	certificate, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		return nil, err
	}
	config, err := yaml.Marshal(map[string]any{
		"apiVersion": "config.sharding.timebertt.dev/v1alpha1", "kind": "SharderConfig",
		"health": map[string]any{"bindAddress": "0"}, "metrics": map[string]any{"bindAddress": "0"},
		"webhook": map[string]any{
			"server": map[string]any{"certDir": dir},
			"config": map[string]any{"clientConfig": map[string]any{"url": "https://" + address, "caBundle": certificate}},
		},
	})
	if err != nil {
		return nil, err
	}
	for name, data := range map[string][]byte{"tls.crt": certificate, "tls.key": key, "sharder.yaml": config} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			return nil, err
		}
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: shardingv1alpha1.NamespaceSystem}}
	if err := client.IgnoreAlreadyExists(c.Create(ctx, namespace)); err != nil {
		return nil, err
	}
	if err := client.IgnoreAlreadyExists(c.Create(ctx, controllerRing())); err != nil {
		return nil, err
	}
	cmd := exec.Command(program, "--config="+filepath.Join(dir, "sharder.yaml"))
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "LEADER_ELECT=false")
	log, err := os.Create(filepath.Join(dir, "sharder.log"))
	if err != nil {
		return nil, err
	}
	cmd.Stdout, cmd.Stderr = log, log
	return cmd, cmd.Start()
}

// controllerRing makes the sharder label the MyWebs, and the children that a MyWeb controls.
func controllerRing() client.Object {
	child := func(group, resource string) any { return map[string]any{"group": group, "resource": resource} }
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "sharding.timebertt.dev/v1alpha1", "kind": "ControllerRing", "metadata": map[string]any{"name": Name},
		"spec": map[string]any{"resources": []any{map[string]any{
			"group": "operator.k8s-summit.org", "resource": "mywebs",
			"controlledResources": []any{child("", "configmaps"), child("apps", "deployments"), child("", "services")},
		}}},
	}}
}
