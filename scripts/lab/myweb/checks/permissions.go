package checks

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	authv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"example.com/operator-workshop/scripts/examine/fixture"
	"example.com/operator-workshop/scripts/examine/proxy"
	"example.com/operator-workshop/scripts/examine/wire"
	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

// permissionChecks are the checks of permissions and namespaces.
var permissionChecks = []suite.Check{
	{ID: "fault/28-namespace-deleted", Alone: true, Run: namespaceDeleted,
		Title: "when the namespace is deleted under a MyWeb that is being made, the operator stops trying"},
	{ID: "fault/31-permission-revoked", Alone: true, Within: 3 * time.Minute, Run: permissionRevoked,
		Title: "a permission that is taken away is reported, tried again with backoff, and its return noticed"},
	{ID: "fault/31-logged-once", Run: loggedOnce,
		Title: "a permission that is missing for 20 s is logged once for each distinct message"},
}

// namespaceDeleted uses a separate namespace, which a finalizer of another program keeps from being removed. For a
// while the operator gets no event about the deletion of the MyWeb.
func namespaceDeleted(t *suite.T) {
	renew(t)
	namespaces := t.Fixture.Kube.CoreV1().Namespaces()
	made, err := namespaces.Create(t.Ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "fault-28-inner-"}}, metav1.CreateOptions{})
	t.Must(err, "make a namespace")
	t.Namespace = made.Name
	t.Make(suite.ConfigMaps, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kept",
		Finalizers: []string{holding}}})
	t.Cleanup(func(ctx context.Context) {
		_, _ = t.Fixture.Kube.CoreV1().ConfigMaps(made.Name).Patch(ctx, "kept", "application/merge-patch+json",
			[]byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}) // else the namespace stays until the lab ends
	})
	held := hold(t, suite.Deployments)
	t.Create("web", suite.Sample())
	t.AwaitFault(held, 1, patience)
	deaf := freeze(t, suite.Resource)
	t.Must(namespaces.Delete(t.Ctx, t.Namespace, metav1.DeleteOptions{}), "delete the namespace")
	t.Eventually("the namespace is being deleted", 0, func() error {
		n, err := namespaces.Get(t.Ctx, t.Namespace, metav1.GetOptions{})
		if err == nil && n.Status.Phase != corev1.NamespaceTerminating {
			err = fmt.Errorf("it is %s", n.Status.Phase)
		}
		return err
	})
	held.Release()
	wantBackoff(t)
	deaf.Release()
	t.AwaitGone(suite.Resource, "web", patience)
	t.AwaitQuiet(time.Second)
	t.StaysQuiet(2 * time.Second)
	wantNoPanic(t, true)
}

// permissionRevoked removes the permission to write ConfigMaps. The permission to read stays: an operator that loses
// it waits for client-go's backoff, which is long.
func permissionRevoked(t *suite.T) {
	o := t.Operator
	before := t.Children(t.Serve("web", suite.Sample()))
	restore := revoke(t)
	mark := t.Mark()
	printed := o.Process().Printed()
	t.SetPage("web", "<h1>changed</h1>")
	t.Eventually("the operator tries", patience, func() error {
		if len(t.Writes(mark)) == 0 {
			return fmt.Errorf("no write")
		}
		return nil
	})
	wantBackoff(t)
	t.Eventually("the operator reports that it may not", patience, func() error {
		if t.Web("web").Condition("Degraded").Status == metav1.ConditionTrue || len(t.Warnings("web")) > 0 ||
			strings.Contains(strings.ToLower(o.Process().OutputSince(printed)), "forbidden") {
			return nil
		}
		return fmt.Errorf("neither a condition nor a Warning nor its own words do")
	})
	if t.Web("web").Is() {
		t.Errorf("completed, though the page could not be written")
	}
	restore()
	web, _ := inPlace(t, before, mark, 0)
	t.Recovered(web)
	wantAlive(t)
}

// revoke removes the permission and returns a function that restores it. For an operator without roles, which may do
// everything, the proxy refuses the requests; the operator cannot distinguish this from the API server.
func revoke(t *suite.T) (restore func()) {
	o := t.Operator
	if o.Impl.Roles == nil {
		return t.Rule(proxy.Rule{Match: toWrite(suite.ConfigMaps), Do: proxy.Refuse(http.StatusForbidden, 0)}).Release
	}
	give := func(ctx context.Context) {
		for _, file := range o.Impl.Roles {
			if err := t.Fixture.Grant(ctx, o.User.Name, "", filepath.Join(o.Impl.Folder, file)); err != nil {
				t.Errorf("give the permissions back: %v", err)
			}
		}
	}
	t.Cleanup(give)
	for n, file := range o.Impl.Roles {
		reduced := filepath.Join(t.Fixture.Dir, fmt.Sprintf("reduced-%d.yaml", n))
		t.Must(reduce(filepath.Join(o.Impl.Folder, file), reduced), "make a smaller role")
		t.Must(t.Fixture.Grant(t.Ctx, o.User.Name, "", reduced), "take a permission away")
	}
	awaitPermission(t, false)
	return func() {
		give(t.Ctx)
		awaitPermission(t, true)
	}
}

// reduce writes a file of roles without the permission to write ConfigMaps.
func reduce(from, to string) error {
	roles, err := fixture.Roles(from)
	if err != nil {
		return err
	}
	var out []string
	for _, role := range roles {
		var rules []rbacv1.PolicyRule
		for _, rule := range role.Rules {
			if slices.Contains(rule.Resources, suite.ConfigMaps) {
				reading := *rule.DeepCopy()
				reading.Resources = []string{suite.ConfigMaps}
				reading.Verbs = slices.DeleteFunc(reading.Verbs, func(v string) bool {
					return v == "*" || slices.Contains(wire.Writes, v)
				})
				rule.Resources = slices.DeleteFunc(rule.Resources, func(r string) bool { return r == suite.ConfigMaps })
				if len(reading.Verbs) > 0 {
					rules = append(rules, reading)
				}
			}
			if len(rule.Resources) > 0 || len(rule.NonResourceURLs) > 0 {
				rules = append(rules, rule)
			}
		}
		role.Rules = rules
		text, err := yaml.Marshal(role)
		if err != nil {
			return err
		}
		out = append(out, string(text))
	}
	return os.WriteFile(to, []byte(strings.Join(out, "\n---\n")), 0o600)
}

// awaitPermission returns when the API server allows the operator to write ConfigMaps, or no longer does.
func awaitPermission(t *suite.T, allowed bool) {
	t.Eventually("the API server acts by the new role", 0, func() error {
		answer, err := t.Fixture.Kube.AuthorizationV1().SubjectAccessReviews().
			Create(t.Ctx, &authv1.SubjectAccessReview{
				Spec: authv1.SubjectAccessReviewSpec{User: t.Operator.User.Name, ResourceAttributes: &authv1.ResourceAttributes{
					Namespace: t.Namespace, Verb: wire.Patch, Resource: suite.ConfigMaps}}}, metav1.CreateOptions{})
		if err == nil && answer.Status.Allowed != allowed {
			err = fmt.Errorf("writing ConfigMaps is allowed: %v", answer.Status.Allowed)
		}
		return err
	})
}

// Details of a log line that change from try to try: times, identifiers, counters.
var details = regexp.MustCompile(`"?reconcileID"?[=:]\s*"?[-0-9a-f]+"?|[0-9a-f]{8}-[0-9a-f-]{27}|[0-9]+`)

// loggedOnce refuses the operator's status writes, an error that the operator can report only in its log, and reads
// the log.
func loggedOnce(t *suite.T) {
	t.Serve("web", suite.Sample())
	printed := t.Operator.Process().Printed()
	missing := t.Rule(proxy.Rule{Match: toWrite(status), Do: proxy.Refuse(http.StatusForbidden, 0)})
	t.SetPage("web", "<h1>changed</h1>")
	t.AwaitFault(missing, 3, patience) // the operator tries again
	t.Pause(20 * time.Second)
	times := map[string]int{}
	for line := range strings.Lines(t.Operator.Process().OutputSince(printed)) {
		if strings.Contains(line, t.Namespace) && strings.Contains(line, "answers 403") {
			times[details.ReplaceAllString(line, "0")]++
		}
	}
	if len(times) == 0 {
		t.Errorf("the operator says nothing of it in its log")
	}
	for line, n := range times {
		if n > 1 {
			t.Errorf("logged %d times in 20 s: %s", n, line)
		}
	}
	missing.Release()
	converged(t, "web")
}
