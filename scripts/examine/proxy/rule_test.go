package proxy_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"example.com/operator-workshop/scripts/examine/ledger"
	"example.com/operator-workshop/scripts/examine/proxy"
	"example.com/operator-workshop/scripts/examine/wire"
)

// creates and reads are the requests that these tests disturb.
var (
	creates = ledger.Match{Verbs: []string{wire.Create}, Resources: []string{"configmaps"}}
	reads   = ledger.Match{Verbs: []string{wire.Get}, Resources: []string{"configmaps"}}
)

func TestDropBefore(t *testing.T) {
	l := newLab(t)
	f := l.proxy.Add(proxy.Rule{Match: creates, Times: 1, Do: proxy.Drop()})
	if err := l.create("a"); err == nil || l.exists("a") {
		t.Errorf("the request reached the API server: %v", err)
	}
	if e := l.last(); len(e.Served) > 0 || e.Code != 0 || !slices.Equal(e.Faults, []string{f.Name()}) {
		t.Errorf("the ledger says %+v", e)
	}
	if err := l.create("a"); err != nil || f.Fired() != 1 {
		t.Errorf("the second request: %v; fired %d times", err, f.Fired())
	}
}

func TestDropAfter(t *testing.T) {
	l := newLab(t)
	l.proxy.Add(proxy.Rule{Match: creates, Moment: proxy.After, Times: 1, Do: proxy.Drop()})
	if err := l.create("a"); err == nil || !l.exists("a") {
		t.Errorf("the client got %v, the object exists: %v", err, l.exists("a"))
	}
	if e := l.last(); !slices.Equal(e.Served, []int{201}) || e.Code != 0 || e.Effect != ledger.Moved {
		t.Errorf("the ledger says %+v", e)
	}
	if err := l.create("a"); !apierrors.IsAlreadyExists(err) {
		t.Errorf("the second request: %v", err)
	}
}

// TestPast has a list as of an earlier time, and reads that no server answers with an earlier state.
func TestPast(t *testing.T) {
	l := newLab(t)
	version, stale := l.configMap("a").ResourceVersion, 0
	l.configMap("b")
	f := l.proxy.Add(proxy.Rule{Do: proxy.Past(version, func() { stale++ }),
		Match: ledger.Match{Verbs: []string{wire.List, wire.Watch}, Resources: []string{"configmaps"}}})
	count := func(asked string) int {
		list, err := l.kube.CoreV1().ConfigMaps(l.namespace).List(t.Context(), metav1.ListOptions{ResourceVersion: asked,
			FieldSelector: "metadata.name!=kube-root-ca.crt"})
		l.must(err)
		return len(list.Items)
	}
	if any, newest := count("0"), count(""); any != 1 || newest != 2 || stale != 1 {
		t.Errorf("a list of any version has %d objects, one of the newest %d; %d were stale", any, newest, stale)
	}
	_, err := l.kube.CoreV1().ConfigMaps(l.namespace).Watch(t.Context(), metav1.ListOptions{SendInitialEvents: new(true),
		AllowWatchBookmarks: true, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan})
	if !apierrors.IsInvalid(err) {
		t.Errorf("a watch with a list: %v", err)
	}
	f.Release()
	if n := count("0"); n != 2 {
		t.Errorf("later a list of any version has %d objects", n)
	}
}

// TestDropIsOneStream drops a request while a watch is open on the same connection.
func TestDropIsOneStream(t *testing.T) {
	l := newLab(t)
	watch, err := l.kube.CoreV1().ConfigMaps(l.namespace).Watch(t.Context(), metav1.ListOptions{})
	l.must(err)
	defer watch.Stop()
	l.proxy.Add(proxy.Rule{Match: creates, Times: 1, Do: proxy.Drop()})
	if err := l.create("a"); err == nil {
		t.Error("nothing was dropped")
	}
	l.configMap("b")
	for e := range watch.ResultChan() {
		if e.Object.(*corev1.ConfigMap).Name == "b" {
			return
		}
	}
	t.Error("the watch ended with the request")
}

func TestAnswers(t *testing.T) {
	for name, test := range map[string]struct {
		code       int
		retryAfter time.Duration
		is         func(error) bool // what the caller sees; nil is success
		asked      int
	}{
		"429 with Retry-After is asked again":         {429, time.Second, nil, 2},
		"503 with Retry-After is asked again":         {503, 100 * time.Millisecond, nil, 2},
		"503 without reaches the caller":              {503, 0, apierrors.IsServiceUnavailable, 1},
		"429 without reaches the caller":              {429, 0, apierrors.IsTooManyRequests, 1},
		"500":                                         {500, 0, apierrors.IsInternalError, 1},
		"504":                                         {504, 0, apierrors.IsTimeout, 1},
		"409 of a create says that the object exists": {409, 0, apierrors.IsAlreadyExists, 1},
		"403": {403, 0, apierrors.IsForbidden, 1},
		"410": {410, 0, apierrors.IsResourceExpired, 1},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			f := l.proxy.Add(proxy.Rule{Match: creates, Times: 1, Do: proxy.Refuse(test.code, test.retryAfter)})
			start := time.Now()
			err := l.create("a")
			if test.is == nil && err != nil || test.is != nil && !test.is(err) {
				t.Errorf("the caller gets %v", err)
			}
			if (test.is == nil) != l.exists("a") || l.ledger.Count(creates) != test.asked || f.Fired() != 1 {
				t.Errorf("the object exists: %v; %v", l.exists("a"), l.ledger.Entries())
			}
			if took := time.Since(start); took < test.retryAfter {
				t.Errorf("asked again after %v", took)
			}
		})
	}
}

func TestAnswersOfOtherVerbs(t *testing.T) {
	l := newLab(t)
	object := l.configMap("a")
	l.proxy.Add(proxy.Rule{Match: ledger.Match{Verbs: []string{wire.Update}}, Times: 1, Do: proxy.Refuse(409, 0)})
	_, err := l.kube.CoreV1().ConfigMaps(l.namespace).Update(t.Context(), object, metav1.UpdateOptions{})
	if !apierrors.IsConflict(err) {
		t.Errorf("409 of an update: %v", err)
	}
	l.proxy.Add(proxy.Rule{Match: creates, Moment: proxy.After, Times: 1, Do: proxy.Refuse(500, 0)})
	if err := l.create("b"); !apierrors.IsInternalError(err) || !l.exists("b") {
		t.Errorf("500 in place of 201: %v; the object exists: %v", err, l.exists("b"))
	}
	if e := l.last(); e.Code != 500 || !slices.Equal(e.Served, []int{201}) || !strings.Contains(e.String(), "500") {
		t.Errorf("the ledger says %+v", e)
	}
	text := proxy.Answer{Code: 200, Body: []byte(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"old"}}`)}
	l.proxy.Add(proxy.Rule{Match: reads, Do: proxy.Reply(text)})
	got, err := l.kube.CoreV1().ConfigMaps(l.namespace).Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil || got.Name != "old" {
		t.Errorf("an answer of the test's own: %v, %v", got, err)
	}
}

func TestDuplicate(t *testing.T) {
	l := newLab(t)
	l.proxy.Add(proxy.Rule{Match: creates, Times: 1, Do: proxy.Duplicate()})
	l.must(l.create("a"))
	if e := l.last(); !slices.Equal(e.Served, []int{201, 409}) || e.Code != 201 || e.Effect != ledger.Moved {
		t.Errorf("the ledger says %+v", e)
	}
	eventually(t, "both are in the audit log", func() bool {
		return l.audited("create configmaps a 201") == 1 && l.audited("create configmaps a 409") == 1
	})
}

func TestDelay(t *testing.T) {
	l := newLab(t)
	const d = 300 * time.Millisecond
	before := l.proxy.Add(proxy.Rule{Match: creates, Do: proxy.Delay(d)})
	after := l.proxy.Add(proxy.Rule{Match: creates, Moment: proxy.After, Do: proxy.Delay(d)})
	start := time.Now()
	l.must(l.create("a"))
	if took := time.Since(start); took < 2*d || l.last().Took < 2*d {
		t.Errorf("took %v, the ledger says %v", took, l.last())
	}
	l.must(l.get("a"))
	if before.Fired() != 1 || after.Fired() != 1 {
		t.Errorf("the rules were applied %d and %d times: the read is not meant", before.Fired(), after.Fired())
	}
}

func TestHold(t *testing.T) {
	for _, moment := range []proxy.Moment{proxy.Before, proxy.After} {
		t.Run(moment.String(), func(t *testing.T) {
			l := newLab(t)
			f := l.proxy.Add(proxy.Rule{Match: creates, Moment: moment, Do: proxy.Hold()})
			done := make(chan error, 1)
			go func() { done <- l.create("a") }()
			l.must(f.Await(t.Context(), 1))
			if there := l.exists("a"); there != (moment == proxy.After) {
				t.Errorf("the object exists: %v", there)
			}
			select {
			case err := <-done:
				t.Fatalf("not held: %v", err)
			case <-time.After(100 * time.Millisecond):
			}
			f.Release()
			if err := <-done; err != nil || !l.exists("a") {
				t.Errorf("released: %v", err)
			}
			l.must(l.create("b")) // the rule is removed
		})
	}
}

// TestHeldClientGivesUp shows that no request is left when its client gives up.
func TestHeldClientGivesUp(t *testing.T) {
	l := newLab(t)
	f := l.proxy.Add(proxy.Rule{Match: creates, Do: proxy.Hold()})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_ = f.Await(ctx, 1)
		cancel()
	}()
	_, err := l.kube.CoreV1().ConfigMaps(l.namespace).Create(ctx, l.newConfigMap("a"), metav1.CreateOptions{})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the client got %v", err)
	}
	eventually(t, "the request is over", func() bool { return !l.last().Open })
	if e := l.last(); len(e.Served) > 0 {
		t.Errorf("it was sent on: %+v", e)
	}
}

func TestCall(t *testing.T) {
	l := newLab(t)
	var seen []string
	note := func(x *proxy.Exchange) proxy.Action {
		there := l.exists("a")
		e := x.Entry()
		code := 0
		if x.Answer() != nil {
			code = x.Answer().Code
		}
		seen = append(seen, fmt.Sprint(e.Name, " ", len(x.RequestBody()) > 0, " ", there, " ", code, " ", e.Effect))
		return proxy.Action{}
	}
	l.proxy.Add(proxy.Rule{Match: creates, Do: proxy.Call(note)})
	l.proxy.Add(proxy.Rule{Match: creates, Moment: proxy.After, Do: proxy.Call(note)})
	l.proxy.Add(proxy.Rule{Match: creates, Moment: proxy.After, Do: proxy.Call(func(*proxy.Exchange) proxy.Action {
		return proxy.Drop()
	})})
	if err := l.create("a"); err == nil {
		t.Error("the function asked for a drop")
	}
	if want := []string{"a true false 0 ", "a true true 201 moved"}; !slices.Equal(seen, want) {
		t.Errorf("%q, want %q", seen, want)
	}
}

// TestCommittedWrites counts only writes that changed an object, as crash sequences do.
func TestCommittedWrites(t *testing.T) {
	l := newLab(t)
	var at []string
	l.proxy.Add(proxy.Rule{Match: ledger.Changes, Moment: proxy.After, Skip: 1, Times: 1,
		Do: proxy.Call(func(x *proxy.Exchange) proxy.Action {
			at = append(at, x.Entry().Name)
			return proxy.Action{}
		})})
	l.must(l.create("a"))
	if err := l.create("a"); err == nil {
		t.Error("created twice")
	}
	object, err := l.kube.CoreV1().ConfigMaps(l.namespace).Get(t.Context(), "a", metav1.GetOptions{})
	l.must(err)
	_, err = l.kube.CoreV1().ConfigMaps(l.namespace).Update(t.Context(), object, metav1.UpdateOptions{})
	l.must(err)
	l.must(l.create("b"))
	l.must(l.create("c"))
	if !slices.Equal(at, []string{"b"}) {
		t.Errorf("the second committed write is %q:\n%v", at, l.ledger.Entries())
	}
}

func TestDeleteMoves(t *testing.T) {
	l := newLab(t)
	services := l.kube.CoreV1().Services(l.namespace)
	_, err := services.Create(t.Context(), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "s"},
		Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}, metav1.CreateOptions{})
	l.must(err)
	l.must(services.Delete(t.Context(), "s", metav1.DeleteOptions{})) // answered with the object
	l.configMap("c")
	l.must(l.kube.CoreV1().ConfigMaps(l.namespace).Delete(t.Context(), "c", metav1.DeleteOptions{})) // with a Status
	kept := l.newConfigMap("kept")
	kept.Finalizers = []string{"lab.example.com/kept"}
	_, err = l.kube.CoreV1().ConfigMaps(l.namespace).Create(t.Context(), kept, metav1.CreateOptions{})
	l.must(err)
	for range 2 { // the second time, it is already being deleted
		l.must(l.kube.CoreV1().ConfigMaps(l.namespace).Delete(t.Context(), "kept", metav1.DeleteOptions{}))
	}
	l.must(l.kube.CoreV1().ConfigMaps(l.namespace).
		DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "no=one"}))
	var got []string
	for _, e := range l.ledger.Entries(ledger.Match{Verbs: []string{wire.Delete, wire.DeleteCollection}}) {
		got = append(got, fmt.Sprint(e.Verb, " ", e.Which()[len(l.namespace)+1:], " ", e.Effect))
	}
	want := []string{"delete s moved", "delete c moved", "delete kept moved", "delete kept same",
		"deletecollection * same"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestSkip(t *testing.T) {
	l := newLab(t)
	third := l.proxy.Add(proxy.Rule{Match: creates, Skip: 2, Times: 1, Do: proxy.Drop()})
	l.must(l.create("a"))
	l.must(l.create("b"))
	if third.Fired() != 0 || third.Matched() != 2 {
		t.Errorf("after two of two that pass, it fired %d times and matched %d", third.Fired(), third.Matched())
	}
	if err := l.create("c"); err == nil {
		t.Error("the third create passed")
	}
	l.must(l.create("d"))
}

// TestFunctionPanics shows that a mistake in a test's own function is not lost.
func TestFunctionPanics(t *testing.T) {
	l := newLab(t)
	p, err := proxy.Start(l.ledger, t.TempDir())
	l.must(err)
	path, err := p.AddClient(l.user, l.direct)
	l.must(err)
	cfg, err := clientcmd.BuildConfigFromFlags("", path)
	l.must(err)
	l.kube = l.clientset(cfg, jsonType)
	p.Add(proxy.Rule{Match: creates, Do: proxy.Call(func(*proxy.Exchange) proxy.Action { panic("a mistake") })})
	if l.create("a") == nil {
		t.Error("the request went well")
	}
	if err = p.Close(); err == nil || !strings.Contains(err.Error(), "a mistake") {
		t.Errorf("close: %v", err)
	}
}
