package suite

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"example.com/operator-workshop/scripts/examine/clock"
	"example.com/operator-workshop/scripts/examine/fixture"
	"example.com/operator-workshop/scripts/examine/frame"
	"example.com/operator-workshop/scripts/examine/ledger"
	"example.com/operator-workshop/scripts/examine/loop"
	"example.com/operator-workshop/scripts/examine/outcome"
	"example.com/operator-workshop/scripts/examine/wire"
)

// must ends a test when there is an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// outcomeOf runs a check with a limit of some milliseconds, in a fixture without a cluster.
func outcomeOf(t *testing.T, within time.Duration, run func(*T)) outcome.Result {
	t.Helper()
	none, err := dynamic.NewForConfig(&rest.Config{Host: "127.0.0.1:1"})
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	o, machine := &Operator{User: &fixture.User{Name: "lab"}}, &clock.Clock{}
	o.AssumeAll()
	go machine.Run(ctx)
	trial := &frame.Trial{Fixture: &fixture.Fixture{Ledger: ledger.New(nil), Dynamic: none}, Clock: machine, Ctx: ctx, User: "lab",
		Namespace: "check"}
	return (&T{Trial: trial, Operator: o, check: Check{ID: "test", Run: run}}).do()
}

// TestTimeThatRanOutIsNoPass has checks that find no failure, the first two because they did not watch long enough.
func TestTimeThatRanOutIsNoPass(t *testing.T) {
	for name, run := range map[string]func(*T){
		"inside a quiet window": func(t *T) { t.StaysQuiet(time.Minute) },
		"inside a pause":        func(t *T) { t.Pause(time.Minute) },
		"after its last step":   func(t *T) { <-t.Ctx.Done() },
	} {
		t.Run(name, func(t *testing.T) {
			begin := time.Now()
			o := outcomeOf(t, 50*time.Millisecond, run)
			if o.Verdict != outcome.Failed || !strings.Contains(o.What, "the time of the check is over") {
				t.Errorf("%s: %s, want failed: the time of the check is over", o.Verdict, o.What)
			}
			if took := time.Since(begin); took > 30*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
	o := outcomeOf(t, time.Minute, func(t *T) { t.StaysQuiet(time.Millisecond); t.Note("%d left out", 2) })
	if o.Verdict != outcome.Passed || !slices.Equal(o.Evidence, []string{"2 left out"}) {
		t.Errorf("a check that ends in time: %s: %s %q", o.Verdict, o.What, o.Evidence)
	}
}

// TestEventuallySaysWhatIsMissing checks that a timeout also reports the missing condition.
func TestEventuallySaysWhatIsMissing(t *testing.T) {
	o := outcomeOf(t, 50*time.Millisecond, func(t *T) {
		t.Eventually("the page is there", 0, func() error { return context.Canceled })
	})
	if o.Verdict != outcome.Failed || !strings.HasPrefix(o.What, "expected that the page is there; but not after") ||
		strings.Contains(o.What, "\n") {
		t.Errorf("%s: %s", o.Verdict, o.What)
	}
}

// TestASlowMachineIsNoVerdict checks that a program is given up only after a number of looks, however long each of
// them takes.
func TestASlowMachineIsNoVerdict(t *testing.T) {
	kube, err := kubernetes.NewForConfig(&rest.Config{Host: "127.0.0.1:1"})
	must(t, err)
	for name, slow := range map[string]time.Duration{"idle": 0, "loaded": 5 * fixture.Poll} {
		looks := 0
		o := outcomeOf(t, time.Minute, func(t *T) {
			t.Fixture.Kube = kube // it does not answer: the check sees no rollout
			t.Operator.AssumeNone()
			t.Operator.reports, t.Operator.patience = false, 10*fixture.Poll
			t.Reaction("it is there", 0, func() error {
				looks++
				time.Sleep(slow)
				return errors.New("it is not")
			})
		})
		if !strings.Contains(o.What, "the operator sends nothing any more, and it is not") || looks < 6 {
			t.Errorf("%s: after %d looks: %s", name, looks, o.What)
		}
	}
}

// TestIdleIsWhatSendsNothing checks when a program counts as idle. A program that handles its MyWebs one after the
// other may still reach this MyWeb; a program that has paused since the event has an empty queue.
func TestIdleIsWhatSendsNothing(t *testing.T) {
	const long = 8 * time.Second
	begin := time.Now().Add(-long)
	for name, test := range map[string]struct {
		requests map[time.Duration]string // by their time after begin, the namespace
		want     time.Duration
	}{
		"no request":           {nil, long},
		"its last request":     {map[time.Duration]string{time.Second: "check"}, long - time.Second},
		"a pause since":        {map[time.Duration]string{0: "other", 2 * time.Second: "other", 7900 * time.Millisecond: "other"}, long},
		"others without pause": {every(500*time.Millisecond, long, "other"), long / 4},
	} {
		t.Run(name, func(t *testing.T) {
			clock := begin
			l := ledger.New(func() time.Time { return clock })
			for _, at := range slices.Sorted(maps.Keys(test.requests)) {
				clock = begin.Add(at)
				id := l.Begin("lab", wire.Request{Verb: wire.Get, Resource: "configmaps", Namespace: test.requests[at]}, nil)
				l.Change(id, func(e *ledger.Entry) { e.Served = []int{200} })
				l.End(id)
			}
			trial := &frame.Trial{Fixture: &fixture.Fixture{Ledger: l}, Namespace: "check", User: "lab"}
			c := &T{Trial: trial, Operator: &Operator{User: &fixture.User{Name: "lab"}}}
			if idle := c.idle(begin); (idle - test.want).Abs() > 500*time.Millisecond {
				t.Errorf("idle for %v, want %v", idle, test.want)
			}
		})
	}
}

func every(step, long time.Duration, namespace string) map[time.Duration]string {
	all := map[time.Duration]string{}
	for at := time.Duration(0); at < long; at += step {
		all[at] = namespace
	}
	return all
}

// TestTheMomentOfTheFirstFailureIsKept checks that, when requests are the failure, the moment is that of the first
// request.
func TestTheMomentOfTheFirstFailureIsKept(t *testing.T) {
	o := outcomeOf(t, time.Minute, func(t *T) {
		for range 3 {
			t.Fixture.Ledger.End(t.Fixture.Ledger.Begin("lab", wire.Request{Verb: wire.Create, Resource: "configmaps"}, nil))
		}
		t.Unexpected(t.Fixture.Ledger.Entries()[1:], "expected none")
		t.Errorf("more")
	})
	if o.At != 2 || o.End != 3 || o.Namespace != "check" {
		t.Errorf("at %d of %d in %s: %s", o.At, o.End, o.Namespace, o.What)
	}
}

// TestAnOperatorThatDoesNotStop checks that a loop of writes is found long before the limit of AwaitQuiet, and that its
// moment is its first write, or the first after the wait began.
func TestAnOperatorThatDoesNotStop(t *testing.T) {
	t.Run("in a quiet time", func(t *testing.T) {
		at := doesNotStop(t, mostWrites, time.Millisecond, func(t *T) { t.AwaitQuiet(10 * time.Second) })
		if at != 1 {
			t.Errorf("at %d", at)
		}
	})
	t.Run("on a slow machine", func(t *testing.T) {
		before := 0
		at := doesNotStop(t, mostWrites, steady+100*time.Millisecond, func(t *T) {
			t.Eventually("it has written", time.Minute, func() error {
				if before = len(t.Writes(0)); before < 4 {
					return errors.New("no")
				}
				return nil
			})
			t.AwaitQuiet(steady)
		})
		if at != before+1 {
			t.Errorf("at %d, after %d", at, before)
		}
	})
	t.Run("before an event", func(t *testing.T) {
		at := doesNotStop(t, mostBefore, time.Millisecond, func(t *T) {
			t.Eventually("it is there", time.Minute, func() error { return errors.New("no") })
		})
		if at != 1 {
			t.Errorf("at %d", at)
		}
	})
}

// doesNotStop returns the moment of the failure.
func doesNotStop(t *testing.T, times int, pause time.Duration, wait func(*T)) int {
	t.Helper()
	begin := time.Now()
	o := outcomeOf(t, time.Minute, func(t *T) {
		t.Act("a user created MyWeb web")
		go func() {
			for t.Ctx.Err() == nil {
				l := t.Fixture.Ledger
				id := l.Begin("lab", wire.Request{Verb: wire.Update, Resource: "mywebs", Namespace: "check", Name: "web"}, nil)
				l.Change(id, func(e *ledger.Entry) { e.Code, e.Effect, e.Served = 200, ledger.Moved, []int{200} })
				l.End(id)
				time.Sleep(pause)
			}
		}()
		wait(t)
	})
	want := fmt.Sprintf("expected that the operator stops writing; but it wrote mywebs web %d times in ", times)
	if !strings.HasPrefix(o.What, want) || time.Since(begin) > 20*time.Second {
		t.Errorf("after %v: %s", time.Since(begin), o.What)
	}
	return o.At
}

// TestAWarWithAController has an operator that writes a ConfigMap without a change, and a Deployment without the annotation
// that a controller of the cluster sets: the failure is about the Deployment, and its moment is the first removal.
func TestAWarWithAController(t *testing.T) {
	version := func(n int) string {
		annotations := ""
		if n%2 == 0 {
			annotations = `"annotations": {"deployment.kubernetes.io/revision": "1"},`
		}
		return fmt.Sprintf(`{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "check", "uid": "u",
			"resourceVersion": "%d", %s "managedFields": [{"manager": "kube-controller-manager", "fieldsType": "FieldsV1", "fieldsV1":
			{"f:metadata": {"f:annotations": {"f:deployment.kubernetes.io/revision": {}}}}}]}}`, n, annotations)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for n := range 6 {
			fmt.Fprintf(w, `{"type": "MODIFIED", "object": %s}`, version(100+n))
		}
	}))
	defer server.Close()
	client, err := dynamic.NewForConfig(&rest.Config{Host: server.URL})
	must(t, err)
	o := outcomeOf(t, time.Minute, func(t *T) {
		t.Fixture.Dynamic = client
		l := t.Fixture.Ledger
		send := func(r wire.Request, n, code int, effect ledger.Effect) {
			r.Namespace, r.Name = "check", "web"
			id := l.Begin("lab", r, nil)
			l.Change(id, func(e *ledger.Entry) {
				e.Code, e.Effect, e.Served, e.UID, e.ResourceVersion = code, effect, []int{code}, "u", fmt.Sprint(n)
			})
			l.End(id)
		}
		deployment := wire.Request{Verb: wire.Create, Group: "apps", Resource: "deployments"}
		l.Describe([]byte(version(1)))
		send(deployment, 1, 201, ledger.Moved)
		deployment.Verb = wire.Update
		send(deployment, 1, 409, ledger.None)
		for n := 2; len(l.Entries()) < 3*mostWrites; n += 2 {
			l.Describe([]byte(version(n)))
			send(wire.Request{Verb: wire.Update, Resource: ConfigMaps}, 0, 200, ledger.Same)
			l.Describe([]byte(version(n + 1)))
			send(deployment, n+1, 200, ledger.Moved)
		}
		t.mustStop(0, mostWrites)
	})
	const want = ": each write removes metadata.annotations.deployment.kubernetes.io/revision, kube-controller-manager puts it " +
		"back, and each of the two changes calls Reconcile again:"
	first, _, _ := strings.Cut(o.What, "\n")
	if !strings.Contains(first, "it wrote deployments.apps web ") || !strings.HasSuffix(first, want) || o.At != 4 {
		t.Errorf("at %d: %s", o.At, first)
	}
}

// TestWhoseFieldIsPutBack: an update of the operator removes what others have set, but nothing of the status.
func TestWhoseFieldIsPutBack(t *testing.T) {
	cluster := []string{"kube-controller-manager"}
	for f, want := range map[*field]bool{
		{"metadata.annotations.a", cluster, true}:                  true,
		{"metadata.annotations.a", cluster, false}:                 false,
		{"metadata.annotations.a", []string{"operator"}, true}:     false,
		{"metadata.annotations.a", append(cluster, "other"), true}: false,
		{"status.unavailableReplicas", cluster, true}:              false,
	} {
		if f.isPutBack() != want {
			t.Errorf("%+v: %t", *f, !want)
		}
	}
}

// TestWhatFollowedAnAct has an operator that gets an event and sends nothing, and one that is refused.
func TestWhatFollowedAnAct(t *testing.T) {
	deleted := wire.Event{Type: "DELETED", Object: wire.Object{Kind: "ConfigMap", Namespace: "check", Name: "web"}}
	for want, after := range map[string]func(*ledger.Ledger, int){
		"After that, the operator got no event and sent no request.": func(*ledger.Ledger, int) {},
		"After that, the operator got the event ConfigMap web DELETED and sent no request.": func(l *ledger.Ledger, watch int) {
			l.Deliver(watch, []wire.Event{deleted})
		},
		"After that, the operator sent 1 request: create configmaps web 403: not allowed.": func(l *ledger.Ledger, _ int) {
			id := l.Begin("lab", wire.Request{Verb: wire.Create, Resource: "configmaps", Namespace: "check", Name: "web"}, nil)
			l.Change(id, func(e *ledger.Entry) { e.Code, e.Message = 403, "not allowed" })
			l.End(id)
		},
		"After that, the operator sent 1 request: update mywebs web 200 moved. Then it got the event ConfigMap " +
			"web DELETED and sent no request.": func(l *ledger.Ledger, watch int) {
			id := l.Begin("lab", wire.Request{Verb: wire.Update, Resource: "mywebs", Namespace: "check", Name: "web"}, nil)
			l.Change(id, func(e *ledger.Entry) { e.Code, e.Effect = 200, ledger.Moved })
			l.End(id)
			l.Deliver(watch, []wire.Event{deleted})
		},
		"After that, the operator sent 1 request: update configmaps web 200 moved.\n" +
			"The ConfigMap web has no owner reference since the operator's update.": func(l *ledger.Ledger, _ int) {
			l.Describe([]byte(`{"metadata": {"uid": "u", "resourceVersion": "1", "ownerReferences": [{"kind": "MyWeb", "name": "web", "uid": "o"}]}}`))
			l.Describe([]byte(`{"metadata": {"uid": "u", "resourceVersion": "2"}}`))
			id := l.Begin("lab", wire.Request{Verb: wire.Update, Resource: "configmaps", Namespace: "check", Name: "web"}, nil)
			l.Change(id, func(e *ledger.Entry) { e.Code, e.Effect, e.UID, e.ResourceVersion = 200, ledger.Moved, "u", "2" })
			l.End(id)
		},
	} {
		silence := ""
		o := outcomeOf(t, time.Minute, func(t *T) {
			l := t.Fixture.Ledger
			watch := l.Begin("lab", wire.Request{Verb: wire.Watch, Resource: "configmaps"}, nil)
			l.Deliver(watch, []wire.Event{deleted}) // before the act
			t.Act("a user deleted ConfigMap web")
			_, _ = t.asUser("an act that fails", wire.Patch, ConfigMaps, "web", func() (*unstructured.Unstructured, error) { return nil, errors.New("no") })
			after(l, watch)
			silence = t.silence(nil)
			t.Errorf("it is not back")
		})
		if o.Did != "a user deleted ConfigMap web" || o.Reaction != want || strings.Contains(want, "403") != strings.Contains(silence, "refused") {
			t.Errorf("%s: %s, want %s; %s", o.Did, o.Reaction, want, silence)
		}
	}
}

// TestTheOwnerThatADeletedChildLacked has a child with its owner, one without, and one whose owner is not its controller.
func TestTheOwnerThatADeletedChildLacked(t *testing.T) {
	const event = "After that, the operator got the event ConfigMap web DELETED and sent no request."
	for owners, want := range map[string]string{
		"": event + "\nThe deleted ConfigMap web had no owner reference.",
		`{"kind": "MyWeb", "name": "web", "uid": "u"}`: event +
			"\nThe deleted ConfigMap web had an owner reference, but no owner was its controller.",
		`{"apiVersion": "operator.k8s-summit.org/v1", "kind": "MyWeb", "name": "web", "uid": "u", "controller": true}`: event,
		`{"apiVersion": "apps/v1", "kind": "MyWeb", "name": "web", "uid": "u", "controller": true}`: event +
			"\nThe owner reference of the deleted ConfigMap web names apps/v1 MyWeb; the MyWeb is operator.k8s-summit.org/v1 MyWeb.",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web", "ownerReferences": [%s]}}`, owners)
		}))
		defer server.Close()
		client, err := dynamic.NewForConfig(&rest.Config{Host: server.URL})
		must(t, err)
		o := outcomeOf(t, time.Minute, func(t *T) {
			t.Fixture.Dynamic = client
			t.Remove(ConfigMaps, "web")
			l := t.Fixture.Ledger
			l.Deliver(l.Begin("lab", wire.Request{Verb: wire.Watch, Resource: ConfigMaps}, nil),
				[]wire.Event{{Type: "DELETED", Object: wire.Object{Kind: "ConfigMap", Namespace: "check", Name: "web"}}})
			t.Errorf("it is not back")
		})
		if o.Reaction != want {
			t.Errorf("owners [%s]: %q, want %q", owners, o.Reaction, want)
		}
	}
}

// TestAChangeThatReachesNoChild has a user who changes the MyWeb: the operator writes the status, or also a child, or nothing.
func TestAChangeThatReachesNoChild(t *testing.T) {
	for want, resources := range map[string][]string{
		"After that, the operator sent 1 request: update mywebs 200 moved.\nNo request was about a child.":                                                {"mywebs"},
		"After that, the operator sent 2 requests, the last: update mywebs 200 moved.\nThe last request about a child: update deployments.apps 200 moved": {Deployments, "mywebs"},
		"After that, the operator sent 2 requests, the last: update deployments.apps 200 moved.":                                                          {"mywebs", Deployments},
	} {
		o := outcomeOf(t, time.Minute, func(t *T) {
			t.ActOn(Resource, "a user changed MyWeb web")
			for _, resource := range resources {
				name, group, _ := strings.Cut(resource, ".")
				l := t.Fixture.Ledger
				id := l.Begin("lab", wire.Request{Verb: wire.Update, Group: group, Resource: name, Namespace: "check"}, nil)
				l.Change(id, func(e *ledger.Entry) { e.Code, e.Effect = 200, ledger.Moved })
				l.End(id)
			}
			t.Errorf("the pods are old")
		})
		if got := strings.ReplaceAll(o.Reaction, "  ", " "); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	old := &Web{Status: WebStatus{Completed: true, ObservedGeneration: 1}}
	if old.Generation = 2; !strings.HasPrefix(old.report(), "the status is still that of generation 1: generation=2 ") {
		t.Error(old.report())
	}
}

// TestTheLoopHasWhatAUserDid has a request of a user that does not pass the proxy, its event, and an act without a
// request.
func TestTheLoopHasWhatAUserDid(t *testing.T) {
	var lines []string
	o := outcomeOf(t, time.Minute, func(t *T) {
		l := t.Fixture.Ledger
		l.Copy(func(r loop.Record) { lines = append(lines, fmt.Sprint(r.N, " ", r.Text(), " ", r.Owners)) })
		_, err := t.asUser("a user created ConfigMap web", wire.Create, ConfigMaps, "web", func() (*unstructured.Unstructured, error) {
			l.Deliver(l.Begin("lab", wire.Request{Verb: wire.Watch, Resource: ConfigMaps}, nil),
				[]wire.Event{{Type: "ADDED", Object: wire.Object{Kind: "ConfigMap", Namespace: "check", Name: "web"}}})
			return &unstructured.Unstructured{Object: map[string]any{"kind": "ConfigMap", "metadata": map[string]any{
				"uid": "u", "resourceVersion": "7", "ownerReferences": []any{map[string]any{"uid": "o"}}}}}, nil
		})
		t.Must(err, "create")
		_, err = t.asUser("", wire.Delete, ConfigMaps, "web", func() (*unstructured.Unstructured, error) {
			return nil, apierrors.NewNotFound(schema.GroupResource{}, "web")
		})
		t.Act("the operator was stopped and started again")
		t.Must(err, "delete")
	})
	want := []string{"3 ConfigMap check/web ADDED []", "1 create configmaps check/web 201 moved [o]",
		"4 delete configmaps check/web 404 []", "5 the operator was stopped and started again []"}
	if diff := cmp.Diff(want, lines); diff != "" || o.Did != "the operator was stopped and started again" || o.At != 5 {
		t.Errorf("after %q, at %d: %s", o.Did, o.At, diff)
	}
}

// TestTheWriterOfAField has a key with dots, and an item of a list.
func TestTheWriterOfAField(t *testing.T) {
	entry := func(manager, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, FieldsV1: metav1.NewFieldsV1(fields)}
	}
	managers := map[string][]string{}
	managed(managers, []metav1.ManagedFieldsEntry{
		entry("kube-controller-manager", `{"f:metadata":{"f:annotations":{"f:deployment.kubernetes.io/revision":{}}}}`),
		entry("operator", `{"f:status":{"f:conditions":{"k:{\"type\":\"Available\"}":{"f:message":{}}}}}`)})
	for path, want := range map[string]string{
		".metadata.annotations.deployment.kubernetes.io/revision": "kube-controller-manager",
		".status.conditions[Available].message":                   "operator",
		".spec.message":                                           "",
	} {
		if got := strings.Join(managers[path], " "); got != want {
			t.Errorf("%s: %q, want %q in %v", path, got, want, managers)
		}
	}
}
