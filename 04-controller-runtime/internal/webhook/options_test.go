package webhook

import (
	"net"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
	"example.com/operator-workshop/04-controller-runtime/internal/testenv"
)

func TestOff(t *testing.T) {
	hooks, err := New(config, Options{})
	must(t, err)
	if hooks.Server() != nil {
		t.Error("outside a cluster, webhooks are off unless asked for")
	}
	must(t, hooks.SetupWithManager(nil))
}

func TestWhatCannotBeServedIsNamed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	for name, test := range map[string]struct {
		options Options
		want    string
	}{
		"an address that nobody can call": {Options{Host: "0.0.0.0"}, "--webhook-host"},
		"a port that is in use":           {Options{Port: l.Addr().(*net.TCPAddr).Port}, "--webhook-port"},
	} {
		test.options.Enabled = new(true)
		if _, err := New(config, test.options); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAUserWithoutThePermissionGetsAnError(t *testing.T) {
	user := rest.CopyConfig(config)
	user.Impersonate.UserName = "reader"
	meta := metav1.ObjectMeta{Name: "reader"}
	must(t, admin.Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{webv1.SchemeGroupVersion.Group}, Resources: []string{"mywebs"},
			Verbs: []string{"list", "watch"}}}}))
	must(t, admin.Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: meta,
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "reader"}},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "reader"}}))
	hooks, err := New(user, Options{Enabled: new(true), Port: testenv.FreePort(t)})
	must(t, err)
	mgr, err := ctrl.NewManager(user,
		ctrl.Options{Metrics: server.Options{BindAddress: "0"}, WebhookServer: hooks.Server()})
	must(t, err)
	must(t, hooks.SetupWithManager(mgr))
	if err := mgr.Start(t.Context()); !apierrors.IsForbidden(err) ||
		!strings.Contains(err.Error(), "run with --webhooks=false") {
		t.Errorf("got %v", err)
	}
}
