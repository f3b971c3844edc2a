package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"sigs.k8s.io/yaml"
)

func (c *Cluster) componentKubeconfig(name string) string {
	return filepath.Join(c.dir(), name+".kubeconfig")
}

// writeKubeconfigs writes the files of the administrator and of the components that are clients, and
// renews those of users when the API server has moved.
func (c *Cluster) writeKubeconfigs() error {
	pki := filepath.Join(c.dir(), "pki")
	for _, name := range []string{"controller-manager", "scheduler", "kwok"} {
		if err := c.writeKubeconfig(c.componentKubeconfig(name), pki, name); err != nil {
			return err
		}
	}
	users, err := filepath.Glob(filepath.Join(c.usersDir(), "*.crt"))
	if err != nil {
		return err
	}
	for _, crt := range users {
		name := filepath.Base(crt[:len(crt)-len(".crt")])
		if err := c.writeKubeconfig(filepath.Join(c.usersDir(), name+".kubeconfig"), c.usersDir(), name); err != nil {
			return err
		}
	}
	return c.writeKubeconfig(c.Kubeconfig(), pki, "admin")
}

// writeKubeconfig writes a kubeconfig with the certificate NAME.crt and the key NAME.key of a folder.
func (c *Cluster) writeKubeconfig(path, certDir, name string) error {
	ca, err := os.ReadFile(filepath.Join(c.dir(), "pki", "ca.crt"))
	if err != nil {
		return err
	}
	cert, err := os.ReadFile(filepath.Join(certDir, name+".crt"))
	if err != nil {
		return err
	}
	key, err := os.ReadFile(filepath.Join(certDir, name+".key"))
	if err != nil {
		return err
	}
	server := fmt.Sprintf("https://%s:%d", loopback, c.ports["apiserver"])
	data, err := yaml.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "workshop",
		"clusters": []any{map[string]any{"name": "workshop",
			"cluster": map[string]any{"server": server, "certificate-authority-data": ca}}},
		"users": []any{map[string]any{"name": name,
			"user": map[string]any{"client-certificate-data": cert, "client-key-data": key}}},
		"contexts": []any{map[string]any{"name": "workshop",
			"context": map[string]any{"cluster": "workshop", "user": name}}},
	})
	if err != nil {
		return err
	}
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, data) {
		return nil
	}
	// Renamed into place: a reader never sees half of it.
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

func (c *Cluster) usersDir() string { return filepath.Join(c.state, "users") }

// AddUser makes a client certificate for a user of the given groups and returns the path of a
// kubeconfig with it. A new user may do nothing until a role is bound to the name. The kubeconfig of a
// user who exists is made anew, with the groups given now.
func (c *Cluster) AddUser(ctx context.Context, name string, groups ...string) (string, error) {
	if !userName.MatchString(name) {
		return "", fmt.Errorf("user name %q: use letters, digits, '-', '_', '.' and ':', at most 64 in all", name)
	}
	release, err := c.lock(ctx)
	if err != nil {
		return "", err
	}
	defer release()
	if err := c.readPorts(); err != nil {
		return "", err
	}
	ca, err := readAuthority(filepath.Join(c.dir(), "pki"))
	if errors.Is(err, os.ErrNotExist) {
		return "", ErrNoCluster
	}
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(c.usersDir(), 0o700); err != nil {
		return "", err
	}
	ca.dir = c.usersDir()
	if err := ca.issue(name, name, groups, nil, nil); err != nil {
		return "", err
	}
	path := filepath.Join(c.usersDir(), name+".kubeconfig")
	return path, c.writeKubeconfig(path, c.usersDir(), name)
}

// userName is what can be a user of Kubernetes, the common name of a certificate and a file name.
var userName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.:-]{0,63}$`)
