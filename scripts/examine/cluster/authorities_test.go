package cluster

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// usersClient is an HTTP client with the certificate of a user, as AddUser makes it.
func usersClient(t *testing.T, c *Cluster, name string) *http.Client {
	t.Helper()
	path, err := c.AddUser(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	k, err := readKubeconfig(path)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(k.Users[0].User.Certificate, k.Users[0].User.Key)
	if err != nil {
		t.Fatal(err)
	}
	// The client sends the certificate to every server, whatever authorities that server accepts.
	show := func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true,
		GetClientCertificate: show}}}
}

// certificatesOfUsers checks that a user's certificate works for the API server alone, and identifies the user there.
func certificatesOfUsers(t *testing.T, c *Cluster) {
	mustKubectl(t, c.Kubeconfig(), "create", "secret", "generic", "hidden", "--from-literal=key=few", "-n", "default")
	secret := c.api("/api/v1/namespaces/default/secrets/hidden")
	alice := usersClient(t, c, "alice")
	if err := healthy(t.Context(), alice, secret); err == nil || !strings.Contains(err.Error(), "403") {
		t.Errorf("alice reads a Secret of the API server: %v", err)
	}
	for _, port := range []string{"etcd", "etcd-peer"} {
		url := fmt.Sprintf("https://%s:%d/v3/kv/range", loopback, c.ports[port])
		key := strings.NewReader(`{"key": "L3JlZ2lzdHJ5L3NlY3JldHMvZGVmYXVsdC9oaWRkZW4="}`) // /registry/…/hidden
		response, err := alice.Post(url, "application/json", key)
		if err == nil {
			body, _ := io.ReadAll(response.Body)
			response.Body.Close()
			t.Errorf("alice is let in at %s: %s, %d bytes", port, response.Status, len(body))
		}
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, secret, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Remote-User", adminUser)
	request.Header.Set("X-Remote-Group", "system:masters")
	_, err = answer(usersClient(t, c, "front-proxy-client"), request)
	if err == nil || !strings.Contains(err.Error(), "403") {
		t.Errorf("a user called front-proxy-client acts as the administrator: %v", err)
	}
}

// oneAuthority makes the certificates of etcd and of the front proxy as an older version of the workshop did.
func oneAuthority(t *testing.T, c *Cluster) {
	dir := filepath.Join(c.dir(), "pki")
	ca, err := readAuthority(dir, "ca")
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range leaves {
		if err := issueLeaf(dir, ca, l); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"etcd-ca", "front-proxy-ca"} {
		for _, end := range []string{".crt", ".key"} {
			removing("cluster", "pki", name+end).make(t, c)
		}
	}
}
