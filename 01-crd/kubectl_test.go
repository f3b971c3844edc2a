package crd_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"example.com/operator-workshop/01-crd/internal/testenv"
)

// kubectl runs the real kubectl against one API server.
type kubectl struct {
	t   *testing.T
	bin string
	env []string
}

// newKubectl returns a kubectl that shares no configuration and no cache with the user's kubectl.
func newKubectl(t *testing.T, cfg *rest.Config) *kubectl {
	t.Helper()
	assets, err := testenv.Assets()
	testenv.Must(t, err)
	home := t.TempDir()
	kubeconfig := filepath.Join(home, "kubeconfig")
	testenv.Must(t, clientcmd.WriteToFile(kubeconfigFor(cfg), kubeconfig))
	return &kubectl{t: t, bin: filepath.Join(assets, "kubectl"), env: append(os.Environ(),
		"KUBECONFIG="+kubeconfig, "HOME="+home, "KUBECACHEDIR="+filepath.Join(home, "cache"))}
}

func kubeconfigFor(cfg *rest.Config) clientcmdapi.Config {
	config := *clientcmdapi.NewConfig()
	config.Clusters["test"] = &clientcmdapi.Cluster{
		Server:                   cfg.Host,
		CertificateAuthorityData: cfg.CAData,
	}
	config.AuthInfos["test"] = &clientcmdapi.AuthInfo{
		ClientCertificateData: cfg.CertData,
		ClientKeyData:         cfg.KeyData,
	}
	config.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", AuthInfo: "test", Namespace: "default"}
	config.CurrentContext = "test"
	return config
}

// run returns what kubectl printed, and its exit code.
func (k *kubectl) run(args ...string) (output string, code int) {
	k.t.Helper()
	cmd := exec.CommandContext(k.t.Context(), k.bin, args...)
	cmd.Env = k.env
	out, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		k.t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// applyObject applies an object as a user applies a file: on the client's side, with a copy in an annotation.
func (k *kubectl) applyObject(t *testing.T, obj *unstructured.Unstructured) {
	t.Helper()
	data, err := json.Marshal(obj)
	testenv.Must(t, err)
	file := filepath.Join(t.TempDir(), "object.json")
	testenv.Must(t, os.WriteFile(file, data, 0o600))
	if out, code := k.run("apply", "-f", file); code != 0 {
		t.Fatalf("kubectl apply: exit code %d\n%.500s", code, out)
	}
}

// deleteMyWeb deletes without kubectl, whose context has ended when cleanup begins.
func deleteMyWeb(t *testing.T, name string) {
	t.Helper()
	if err := newClient(t, server).Delete(context.Background(), newMyWeb(name, nil)); err != nil {
		t.Error(err)
	}
}
