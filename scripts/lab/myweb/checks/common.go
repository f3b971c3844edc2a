package checks

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/operator-workshop/scripts/examine/ledger"
	"example.com/operator-workshop/scripts/examine/proxy"
	"example.com/operator-workshop/scripts/examine/wire"
	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

const (
	// quiet is how long the operator must not write to be in steady state.
	quiet = 300 * time.Millisecond
	// patience is the time limit for an expected event: a retry may be some seconds away, and the machine busy.
	patience = 45 * time.Second
	// status is the resource of the operator's status writes.
	status = suite.StatusResource
)

var (
	// written are the resources that an operator writes.
	written = append([]string{status}, suite.Kinds...)
	// committed are writes that the API server has executed.
	committed = ledger.Match{Where: ledger.Entry.Committed}
)

// toWrite matches the writes to resources.
func toWrite(resources ...string) ledger.Match {
	return ledger.Match{Verbs: wire.Writes, Resources: resources}
}

// hold keeps the first write to a resource until the rule is released.
func hold(t *suite.T, resources ...string) *proxy.Fault {
	return t.Rule(proxy.Rule{Match: toWrite(resources...), Times: 1, Do: proxy.Hold()})
}

// short is a resource as part of an ID: "deployment".
func short(resource string) string { return strings.ToLower(suite.KindOf[resource]) }

// asking is the spec of a MyWeb with a node port.
func asking(port int32) suite.WebSpec {
	spec := suite.Sample()
	spec.NodePortNumber = &port
	return spec
}

// replicas is the spec of a MyWeb with so many pods.
func replicas(n int32) suite.WebSpec {
	spec := suite.Sample()
	spec.Replicas = &n
	return spec
}

// page is the spec of a MyWeb with a page.
func page(text string) suite.WebSpec {
	spec := suite.Sample()
	spec.PageContentHTML = &text
	return spec
}

// converged returns the MyWeb and its children when the MyWeb is served and the operator is in steady state. The
// children must match the spec. A status may be from before a child was recreated, so the pods count, too.
func converged(t *suite.T, name string) (*suite.Web, *suite.Children) {
	t.Served(name, "is completed", patience)
	t.Eventually("the pods of "+name+" run", patience, func() error {
		d, err := t.Fixture.Kube.AppsV1().Deployments(t.Namespace).Get(t.Ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		return suite.RolledOut(d)
	})
	t.AwaitQuiet(500 * time.Millisecond)
	web := t.Served(name, "is completed", patience)
	c := t.Children(web)
	if err := c.Follow(web.Spec); err != nil {
		t.Errorf("completed, but %v", err)
	}
	return web, c
}

// inPlace expects that the same children serve the MyWeb web, that the operator has created n objects of each kind
// since a mark, and that it writes nothing in the end.
func inPlace(t *suite.T, before *suite.Children, mark, n int) (*suite.Web, *suite.Children) {
	web, after := converged(t, "web")
	t.SameChildren(before, after)
	wantMade(t, mark, n, suite.Kinds...)
	t.StaysQuiet(time.Second)
	return web, after
}

// recovers expects that the MyWeb web is served without errors.
func recovers(t *suite.T) *suite.Children {
	web, c := converged(t, "web")
	t.Recovered(web)
	return c
}

// pods are the pods that a selector finds, except those that are being deleted.
func pods(t *suite.T, selector string) []corev1.Pod {
	list, err := t.Fixture.Kube.CoreV1().Pods(t.Namespace).List(t.Ctx, metav1.ListOptions{LabelSelector: selector})
	t.Must(err, "list pods")
	return slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil })
}

// podsOf are the pods of a MyWeb: by the selector of its status or, when the status has none, of its Deployment.
func podsOf(t *suite.T, web *suite.Web) []corev1.Pod {
	if t.Reports() {
		return pods(t, web.Status.Selector)
	}
	return pods(t, metav1.FormatLabelSelector(t.Children(web).Deployment.Spec.Selector))
}

func uids(pods []corev1.Pod) (all []types.UID) {
	for _, p := range pods {
		all = append(all, p.UID)
	}
	slices.Sort(all)
	return all
}

// portOf is the node port of a Service; 0 when it has none.
func portOf(s *corev1.Service) int32 {
	if len(s.Spec.Ports) == 0 {
		return 0
	}
	return s.Spec.Ports[0].NodePort
}
