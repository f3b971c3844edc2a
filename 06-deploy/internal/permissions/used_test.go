package permissions

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	rbacv1 "k8s.io/api/rbac/v1"

	"example.com/operator-workshop/06-deploy/internal/manifests"
	"example.com/operator-workshop/06-deploy/internal/testenv"
)

const small = `
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: work}, rules: [
  {apiGroups: [""], resources: [configmaps], verbs: [create, patch]},
  {apiGroups: [""], resources: [secrets], verbs: [get], resourceNames: [mine]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: lease, namespace: home}, rules: [
  {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [update]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: other},
  rules: [{apiGroups: [""], resources: [pods], verbs: [list]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: work, namespace: web},
  roleRef: {kind: ClusterRole, name: work}, subjects: [{kind: ServiceAccount, namespace: home, name: me}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: lease, namespace: home},
  roleRef: {kind: Role, name: lease}, subjects: [{kind: ServiceAccount, namespace: home, name: me}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: other},
  roleRef: {kind: ClusterRole, name: other}, subjects: [{kind: ServiceAccount, namespace: home, name: you}]}
`

var me = rbacv1.Subject{Namespace: "home", Name: "me"}

func granted(t *testing.T) []Permission {
	t.Helper()
	all, err := manifests.Read(strings.NewReader(small))
	testenv.Must(t, err)
	found, err := Granted(all, me)
	testenv.Must(t, err)
	return found
}

// line returns a line of an audit log.
func line(verb, group, resource, namespace, name string, code int, decision string) string {
	return fmt.Sprintf(`{"stage":"ResponseComplete","verb":%q,"requestURI":"/%s",`+
		`"user":{"username":"system:serviceaccount:home:me"},`+
		`"objectRef":{"apiGroup":%q,"resource":%q,"namespace":%q,"name":%q},"responseStatus":{"code":%d},`+
		`"annotations":{"authorization.k8s.io/decision":%q}}`+"\n",
		verb, resource, group, resource, namespace, name, code, decision)
}

func TestGrantsAreTakenApart(t *testing.T) {
	var got []string
	for _, p := range granted(t) {
		got = append(got, p.String())
	}
	want := []string{"create configmaps in web (ClusterRole work)", "patch configmaps in web (ClusterRole work)",
		"get secrets/mine in web (ClusterRole work)", "update leases.coordination.k8s.io in home (Role lease)"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestWhatWasDeniedOrNotUsedIsFound(t *testing.T) {
	all := line("patch", "", "configmaps", "web", "a", 201, "allow") +
		line("get", "", "secrets", "web", "mine", 200, "allow") +
		line("update", "coordination.k8s.io", "leases", "home", "l", 200, "allow")
	for name, test := range map[string]struct {
		log            string
		denied, unused []string
		wrong          string
	}{
		"all used: an apply that makes an object needs create": {log: all},
		"an apply that only changes one does not": {log: strings.Replace(all, "201", "200", 1),
			unused: []string{"create configmaps in web (ClusterRole work)"}, wrong: "1 permissions were not used"},
		"another object": {log: strings.Replace(all, `"name":"mine"`, `"name":"other"`, 1),
			unused: []string{"get secrets/mine in web (ClusterRole work)"}, wrong: "1 permissions were not used"},
		"another namespace": {log: strings.Replace(all, `"namespace":"home"`, `"namespace":"web"`, 1),
			unused: []string{"update leases.coordination.k8s.io in home (Role lease)"}, wrong: "1 permissions were not used"},
		"denied": {log: all + line("list", "", "pods", "", "", 403, "forbid"), denied: []string{"list /pods"},
			wrong: "1 requests were denied"},
		"denied does not count as used": {
			log: strings.Replace(all, `200},"annotations":{"authorization.k8s.io/decision":"allow"`,
				`403},"annotations":{"authorization.k8s.io/decision":"forbid"`, 1),
			denied: []string{"get /secrets"}, unused: []string{"get secrets/mine in web (ClusterRole work)"},
			wrong: "1 requests were denied"},
		"refused by a quota is not denied": {log: all + line("create", "", "pods", "web", "p", 403, "allow")},
		"somebody else's request": {log: all +
			strings.Replace(line("list", "", "pods", "", "", 403, "forbid"), "home:me", "home:you", 1)},
		"half a line at the end": {log: all + `{"stage":"Resp`},
		"no request at all": {log: "", wrong: "has no request of this account",
			unused: []string{"create configmaps in web (ClusterRole work)", "patch configmaps in web (ClusterRole work)",
				"get secrets/mine in web (ClusterRole work)", "update leases.coordination.k8s.io in home (Role lease)"}},
	} {
		requests, err := ReadAudit(strings.NewReader(test.log), "system:serviceaccount:home:me")
		testenv.Must(t, err)
		v := Compare(granted(t), requests)
		if diff := cmp.Diff([][]string{test.denied, test.unused}, [][]string{v.Denied, v.Unused}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		var out bytes.Buffer
		err = v.Report(&out)
		if (err == nil) != (test.wrong == "") || err != nil && !strings.Contains(err.Error(), test.wrong) {
			t.Errorf("%s: got %v, want %q\n%s", name, err, test.wrong, &out)
		}
	}
}

func TestBadInputIsNamed(t *testing.T) {
	if _, err := ReadAudit(strings.NewReader("Nov 21 audit: began\n"), "me"); err == nil ||
		!strings.Contains(err.Error(), "one JSON object a line") {
		t.Errorf("a log that is none: %v", err)
	}
	if _, err := Granted(nil, me); err == nil || !strings.Contains(err.Error(), "is it the right one?") {
		t.Errorf("no manifests: %v", err)
	}
	all, err := manifests.Read(strings.NewReader(strings.Replace(small, "kind: ClusterRole, name: work}",
		"kind: ClusterRole, name: gone}", 1)))
	testenv.Must(t, err)
	if _, err := Granted(all, me); err == nil ||
		!strings.Contains(err.Error(), "ClusterRole gone is bound, and is not among the manifests") {
		t.Errorf("a role that is not there: %v", err)
	}
}
