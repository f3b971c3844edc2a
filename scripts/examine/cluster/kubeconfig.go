package cluster

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"example.com/operator-workshop/scripts/examine/pki"
)

// kubeconfig has the parts of a kubeconfig that are written: one cluster, one user.
type kubeconfig struct {
	APIVersion     string         `json:"apiVersion"`
	Kind           string         `json:"kind"`
	CurrentContext string         `json:"current-context"`
	Clusters       []namedCluster `json:"clusters"`
	Users          []namedUser    `json:"users"`
	Contexts       []any          `json:"contexts"`
}

type namedCluster struct {
	Name    string `json:"name"`
	Cluster struct {
		Server    string `json:"server"`
		Authority []byte `json:"certificate-authority-data"`
	} `json:"cluster"`
}

type namedUser struct {
	Name string `json:"name"`
	User struct {
		Certificate []byte `json:"client-certificate-data"`
		Key         []byte `json:"client-key-data"`
	} `json:"user"`
}

func (c *Cluster) componentKubeconfig(name string) string {
	return filepath.Join(c.dir(), name+".kubeconfig")
}

// writeKubeconfigs writes the kubeconfigs of the administrator and of the components that are clients, and renews those
// of users when the API server, the lens or the authority has changed.
func (c *Cluster) writeKubeconfigs() error {
	pki := filepath.Join(c.dir(), "pki")
	for _, way := range []struct{ path, server, name string }{
		{c.componentKubeconfig("controller-manager"), c.api(""), "controller-manager"},
		{c.componentKubeconfig("scheduler"), c.api(""), "scheduler"},
		{c.componentKubeconfig("kwok"), c.api(""), "kwok"},
		{c.componentKubeconfig("admin"), c.api(""), "admin"},
		{c.Kubeconfig(), c.address(), "admin"},
	} {
		cert, err := os.ReadFile(filepath.Join(pki, way.name+".crt"))
		if err != nil {
			return err
		}
		key, err := os.ReadFile(filepath.Join(pki, way.name+".key"))
		if err != nil {
			return err
		}
		if err := c.writeKubeconfig(way.path, way.server, way.name, cert, key); err != nil {
			return err
		}
	}
	users, err := os.ReadDir(c.usersDir())
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, user := range users {
		if strings.HasSuffix(user.Name(), ".kubeconfig") {
			err = errors.Join(err, c.renewUser(filepath.Join(c.usersDir(), user.Name())))
		}
	}
	return err
}

// writeKubeconfig writes a kubeconfig for a user. A kubeconfig of the same user for the same cluster stays unchanged:
// the user may have set a namespace in it.
func (c *Cluster) writeKubeconfig(path, address, user string, cert, key []byte) error {
	ca, err := os.ReadFile(filepath.Join(c.dir(), "pki", "ca.crt"))
	if err != nil {
		return err
	}
	server := namedCluster{Name: "workshop"}
	server.Cluster.Server, server.Cluster.Authority = address, ca
	client := namedUser{Name: user}
	client.User.Certificate, client.User.Key = cert, key
	want := kubeconfig{APIVersion: "v1", Kind: "Config", CurrentContext: "workshop",
		Clusters: []namedCluster{server}, Users: []namedUser{client},
		Contexts: []any{map[string]any{"name": "workshop", "context": map[string]any{"cluster": "workshop", "user": user}}}}
	if old, err := readKubeconfig(path); err == nil && len(old.Contexts) == 1 &&
		old.CurrentContext == want.CurrentContext &&
		reflect.DeepEqual(old.Clusters, want.Clusters) && reflect.DeepEqual(old.Users, want.Users) {
		return nil
	}
	data, err := yaml.Marshal(want)
	if err != nil {
		return err
	}
	return c.replaceFile(path, data)
}

func readKubeconfig(path string) (kubeconfig, error) {
	var k kubeconfig
	data, err := os.ReadFile(path)
	if err != nil {
		return k, err
	}
	return k, yaml.Unmarshal(data, &k)
}

// replaceFile writes a file in one step: other processes see the complete old file or the complete new file.
func (c *Cluster) replaceFile(path string, data []byte) error {
	tmp := filepath.Join(c.dir(), "half-written")
	if err := os.WriteFile(tmp, data, 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}

func (c *Cluster) usersDir() string { return filepath.Join(c.state, "users") }

// AddUser makes a client certificate for a user of the given groups and returns the path of a kubeconfig with it. A new
// user has no permissions until a role is bound to the name. The kubeconfig of an existing user is made anew, with the
// groups given now.
func (c *Cluster) AddUser(ctx context.Context, name string, groups ...string) (string, error) {
	if !userName.MatchString(name) {
		return "", fmt.Errorf("user name %q: use letters, digits, '-', '_', '.' and ':', at most 64 in all", name)
	}
	if slices.Contains(groups, "") {
		return "", fmt.Errorf("user %s: the name of a group is empty", name)
	}
	if _, err := os.Stat(c.dir()); errors.Is(err, os.ErrNotExist) {
		return "", c.noCluster()
	}
	release, err := c.lock(ctx)
	if err != nil {
		return "", err
	}
	defer release()
	if err := c.readPorts(); err != nil {
		return "", err
	}
	// A colon separates files in KUBECONFIG, so a path must not contain a colon.
	path := filepath.Join(c.usersDir(), strings.ReplaceAll(name, ":", "%3A")+".kubeconfig")
	return path, c.issueUser(path, name, groups)
}

func (c *Cluster) issueUser(path, name string, groups []string) error {
	ca, err := readAuthority(filepath.Join(c.dir(), "pki"), "ca")
	if err != nil {
		return fmt.Errorf("%w: %s", err, c.Fixes.Damaged)
	}
	cert, key, err := ca.Issue(pki.Subject{User: name, Groups: groups})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(c.usersDir(), 0o700); err != nil {
		return err
	}
	return c.writeKubeconfig(path, c.address(), name, cert, key)
}

// renewUser keeps the kubeconfig of a user usable: the API server may have another address, and a new authority has not
// signed the old certificate.
func (c *Cluster) renewUser(path string) error {
	var pair tls.Certificate
	old, err := readKubeconfig(path)
	if err == nil && len(old.Users) != 1 {
		err = fmt.Errorf("%d users are in it", len(old.Users))
	}
	if err == nil {
		pair, err = tls.X509KeyPair(old.Users[0].User.Certificate, old.Users[0].User.Key)
	}
	if err != nil {
		c.report("%s is damaged (%v): %s", path, err, c.Fixes.User)
		return nil
	}
	ca, err := readAuthority(filepath.Join(c.dir(), "pki"), "ca")
	if err != nil {
		return err
	}
	if ca.Verify(pair.Leaf) != nil {
		return c.issueUser(path, old.Users[0].Name, pair.Leaf.Subject.Organization)
	}
	return c.writeKubeconfig(path, c.address(), old.Users[0].Name, old.Users[0].User.Certificate, old.Users[0].User.Key)
}

// userName matches names that can be a user of Kubernetes, the common name of a certificate and a file name.
var userName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.:-]{0,63}$`)
