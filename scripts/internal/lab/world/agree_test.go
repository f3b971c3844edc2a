package world

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"example.com/operator-workshop/scripts/internal/lab/ledger"
	"example.com/operator-workshop/scripts/internal/lab/wire"
)

// TestWitnessesAgree runs the operator undisturbed, from its start to its end, and asks ledger, audit log
// and apiserver_request_total what it sent.
func TestWitnessesAgree(t *testing.T) {
	u := operator(t, "undisturbed")
	count, err := w.Count(within(t, 30*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	mark := w.Ledger.Mark()
	p := run(t, u)
	for _, name := range []string{"one", "two", "three"} {
		create(t, "default", name)
	}
	for _, name := range []string{"one", "two", "three"} {
		eventually(t, name+" is completed", completed(t, "default", name))
	}
	for _, name := range []string{"one", "two", "three"} {
		remove(t, "default", name)
	}
	mine := ledger.Match{Users: []string{u.Name}, After: mark}
	if err := w.Ledger.AwaitQuiet(within(t, 30*time.Second), 500*time.Millisecond, mine); err != nil {
		t.Fatal(err)
	}
	if exit := p.Terminate(10 * time.Second); exit.Code != 0 {
		t.Errorf("the operator %v:\n%s", exit, p.Output())
	}
	if err := count.Agree(within(t, 15*time.Second), u.Name); err != nil {
		t.Error(err)
	}
	writes := w.Ledger.CountBy(func(e ledger.Entry) string { return e.Verb + " " + e.What() }, mine, ledger.Changes)
	// At least: a child that is collected before the operator hears that its MyWeb is gone is made once more.
	if writes["apply configmaps"] < 3 || writes["apply deployments.apps"] < 3 || writes["apply services"] < 3 {
		var text strings.Builder
		_ = w.Ledger.Print(&text, mine)
		t.Errorf("the ledger lacks what the operator does: %v\n%s", writes, &text)
	}
	if reads := w.Ledger.Count(mine, ledger.Match{Verbs: []string{wire.Get, wire.List}, Resources: []string{"*.*"}}); reads > 0 {
		t.Errorf("%d reads of an operator that only watches", reads)
	}
	watches := w.Ledger.Entries(mine, ledger.Match{Verbs: []string{wire.Watch}})
	if len(watches) != 4 {
		t.Errorf("%d watches:\n%v", len(watches), watches)
	}
	disagree(t, count, u)
}

// disagree shows that the comparison can fail: each witness in turn has one request more than the others.
func disagree(t *testing.T, count *Count, u *User) {
	briefly := func() context.Context { return within(t, 300*time.Millisecond) }
	id := w.Ledger.Begin(u.Name, wire.Request{Verb: wire.Create, Version: "v1", Resource: "configmaps", Namespace: "default", Name: "x"}, 0)
	w.Ledger.Change(id, func(e *ledger.Entry) {
		e.Code, e.Served, e.AuditIDs, e.Effect = 201, []int{201}, []string{"made-up"}, ledger.Moved
	})
	w.Ledger.End(id)
	err := count.Agree(briefly(), u.Name)
	if err == nil || !strings.Contains(err.Error(), "not in the audit log") || !strings.Contains(err.Error(), "in the ledger") {
		t.Errorf("a request that only the ledger has: %v", err)
	}
	w.Ledger.Change(id, func(e *ledger.Entry) { e.User = "nobody" })
	if err := count.Agree(within(t, 15*time.Second), u.Name); err != nil {
		t.Errorf("the others agree: %v", err)
	}
	proxied, err := kubernetes.NewForConfig(u.Proxied)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := proxied.CoreV1().Secrets("").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Fatal(err)
	}
	if err := count.Agree(within(t, 15*time.Second), u.Name); err != nil {
		t.Errorf("a request without permission: %v", err)
	}
	direct, err := kubernetes.NewForConfig(u.Config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := direct.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := count.Agree(briefly(), u.Name); err == nil || !strings.Contains(err.Error(), "not in the ledger") {
		t.Errorf("a request past the proxy: %v", err)
	}
}

func TestTotals(t *testing.T) {
	got, err := parseTotals([]byte(`# HELP apiserver_request_total x
apiserver_request_total{code="200",component="apiserver",dry_run="",group="apps",resource="deployments",scope="resource",subresource="",verb="APPLY",version="v1"} 3
apiserver_request_total{code="200",component="apiserver",dry_run="All",group="apps",resource="deployments",scope="resource",subresource="",verb="APPLY",version="v1"} 2
apiserver_request_total{code="200",component="apiserver",dry_run="",group="",resource="",scope="",subresource="/readyz",verb="GET",version=""} 9
apiserver_request_total_other 1
`))
	want := "map[APPLY deployments.apps 200:5]"
	if fmt.Sprint(got) != want || err != nil {
		t.Errorf("%v, %v, want %s", got, err, want)
	}
	if _, err := parseTotals([]byte("apiserver_request_total{code=\"\",resource=\"pods\"} 1\n")); err == nil {
		t.Error("a line without a code was read")
	}
}
