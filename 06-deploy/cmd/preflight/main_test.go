package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

func TestBadInputSaysWhatToDo(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	file := clientcmdapi.NewConfig()
	file.Clusters["c"] = &clientcmdapi.Cluster{Server: "https://127.0.0.1:1"}
	file.Contexts["x"] = &clientcmdapi.Context{Cluster: "c"}
	file.CurrentContext = "x"
	if err := clientcmd.WriteToFile(*file, kubeconfig); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		kubeconfig string
		args       []string
		in, want   string
	}{
		"no verb":             {kubeconfig, nil, "", "preflight check < MANIFESTS"},
		"a verb that is none": {kubeconfig, []string{"look"}, "", `"look" is no verb`},
		"a flag":              {kubeconfig, []string{"wait", "--colour"}, "", "preflight wait < MANIFESTS"},
		"no kubeconfig":       {filepath.Join(os.DevNull, "none"), []string{"check"}, "", "set KUBECONFIG"},
		"no manifests":        {kubeconfig, []string{"check"}, "{", "read manifests"},
		"an API server that is gone": {
			kubeconfig, []string{"check"}, "", "the API server https://127.0.0.1:1 does not answer"},
		"a CRD that cannot be read": {kubeconfig, []string{"uninstall"}, "", "https://127.0.0.1:1"},
	} {
		t.Setenv("KUBECONFIG", test.kubeconfig)
		err := run(t.Context(), test.args, strings.NewReader(test.in), &bytes.Buffer{})
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", name, err, test.want)
		}
	}
}
