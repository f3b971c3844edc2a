package testenv

import (
	"net"
	"path/filepath"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// WriteKubeconfig writes a kubeconfig that connects as the configuration does, in a namespace, and returns its path.
func WriteKubeconfig(t *testing.T, cfg *rest.Config, namespace string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a kubeconfig") // the path of a home folder may have a space, too
	err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"test": {Server: cfg.Host, CertificateAuthorityData: cfg.CAData}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"test": {Token: cfg.BearerToken,
			ClientCertificateData: cfg.CertData, ClientKeyData: cfg.KeyData, Impersonate: cfg.Impersonate.UserName}},
		Contexts:       map[string]*clientcmdapi.Context{"test": {Cluster: "test", AuthInfo: "test", Namespace: namespace}},
		CurrentContext: "test",
	}, path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// FreePort returns a port on loopback that nothing listens on.
func FreePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
