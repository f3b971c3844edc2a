package webhookserver

import (
	"bytes"
	"errors"
	"io"
	"os"
	"testing"

	"github.com/go-logr/logr"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/operator-workshop/04-controller-runtime/internal/testenv"
)

// These tests know nothing of the project but the permissions that it ships for rotation.

var (
	apiserver *rest.Config
	admin     client.Client
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(testenv.Main(m, func(cfg *rest.Config) (err error) {
		apiserver = cfg
		admin, err = client.New(cfg, client.Options{})
		return err
	}))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// permissions are the permissions that the project ships for rotation.
type permissions struct {
	rules          []rbacv1.PolicyRule // in the whole cluster
	namespaceRules []rbacv1.PolicyRule // in the operator's namespace
}

// shippedPermissions reads the file that controller-gen makes of the project's markers.
func shippedPermissions(t *testing.T) (p permissions) {
	t.Helper()
	data, err := os.ReadFile("../../config/webhook/role.yaml") // a scaffolded project
	if errors.Is(err, os.ErrNotExist) {
		data, err = os.ReadFile("../../config/rbac/webhook_role.yaml")
	}
	must(t, err)
	for documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096); ; {
		var role rbacv1.Role // a ClusterRole has the same rules
		if err := documents.Decode(&role); errors.Is(err, io.EOF) {
			return p
		} else if err != nil {
			t.Fatal(err)
		}
		if role.Kind == "Role" {
			p.namespaceRules = role.Rules
		} else {
			p.rules = role.Rules
		}
	}
}

// names are the objects of a resource that may be written.
func (p permissions) names(resource string) (names []string) {
	for _, rule := range append(p.rules, p.namespaceRules...) {
		for _, r := range rule.Resources {
			if r == resource {
				names = append(names, rule.ResourceNames...)
			}
		}
	}
	return names
}

// grant returns the configuration of a user with these permissions, and no other.
func (p permissions) grant(t *testing.T, namespace string) *rest.Config {
	t.Helper()
	cfg := rest.CopyConfig(apiserver)
	cfg.Impersonate.UserName = "operator"
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "operator"}}
	ref := func(kind string) rbacv1.RoleRef {
		return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: "rotation"}
	}
	meta := metav1.ObjectMeta{Namespace: namespace, Name: "rotation"}
	whole := metav1.ObjectMeta{Name: "rotation"}
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		&rbacv1.Role{ObjectMeta: meta, Rules: p.namespaceRules},
		&rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: ref("Role")},
		&rbacv1.ClusterRole{ObjectMeta: whole, Rules: p.rules},
		&rbacv1.ClusterRoleBinding{ObjectMeta: whole, Subjects: subjects, RoleRef: ref("ClusterRole")},
	} {
		must(t, admin.Create(t.Context(), o))
	}
	return cfg
}
