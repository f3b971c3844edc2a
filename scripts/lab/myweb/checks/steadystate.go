package checks

import (
	"bufio"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/operator-workshop/scripts/examine/fixture"
	"example.com/operator-workshop/scripts/examine/ledger"
	"example.com/operator-workshop/scripts/examine/wire"
	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

func nothingInSteadyState(t *suite.T) {
	t.Serve("web", asking(t.NodePort()))
	t.StaysQuiet(time.Second)
	touch(t, "web")
	t.StaysQuiet(time.Second)
}

// touch labels a MyWeb and its children: the operator reconciles them, and the labels have no other effect. An
// annotation would have one, because it gives a Deployment a new generation.
func touch(t *suite.T, name string) {
	const label = `{"metadata":{"labels":{"example.com/team":"a"}}}`
	t.Edit(suite.Resource, name, label)
	for _, k := range suite.Kinds {
		t.Edit(k, name, label)
	}
}

// otherWords enqueues the MyWeb without changing a field of the MyWeb or of the operator. The generation of the
// Deployment must stay (an annotation would change it), because otherwise its status would change, and with it the
// MyWeb's.
func otherWords(t *suite.T) {
	t.Serve("web", replicas(1))
	mark := t.Mark()
	touch(t, "web")
	t.Edit(suite.Deployments, "web",
		`{"spec":{"progressDeadlineSeconds":600,"minReadySeconds":0,"strategy":{"type":"RollingUpdate"}}}`)
	t.Edit(suite.Services, "web",
		`{"spec":{"sessionAffinity":"None","internalTrafficPolicy":"Cluster","ipFamilyPolicy":"SingleStack"}}`)
	t.Pause(2 * time.Second)
	wantNoWrite(t, mark)
	converged(t, "web")
	for _, k := range append([]string{suite.Resource}, suite.Kinds...) {
		if t.Read(k, "web").GetLabels()["example.com/team"] != "a" {
			t.Errorf("the label that another client set on the object of %s is gone", k)
		}
	}
}

func nothingAfterRestart(t *suite.T) {
	webs := map[string]suite.WebSpec{"plain": suite.Sample(), "port": asking(t.NodePort()), "none": replicas(0)}
	for name, spec := range webs {
		t.Create(name, spec)
	}
	t.Settled(slices.Collect(maps.Keys(webs))...)
	t.AwaitAlone()
	mark := t.Mark()
	t.Act("the operator was stopped and started again")
	t.Must(t.Operator.Restart(t.Ctx), "restart the operator")
	isNewest := awaitTurn(t, "newest", mark)
	t.Pause(700 * time.Millisecond)
	wantNone(t, slices.DeleteFunc(t.Writes(mark), isNewest))
}

// awaitTurn creates one more MyWeb, and returns when the operator has written an object for it since a mark: it reconciles
// the MyWebs of the cache before that. A pause alone is too short for a busy machine. isNewest reports whether a request is for
// that MyWeb.
func awaitTurn(t *suite.T, name string, mark int) (isNewest func(ledger.Entry) bool) {
	web, err := suite.NewWeb(name, suite.Sample())
	t.Must(err, "make MyWeb "+name)
	_, err = t.Objects(suite.Resource).Create(t.Ctx, web, metav1.CreateOptions{}) // no act of the story
	t.Must(err, "create MyWeb "+name)
	isNewest = func(e ledger.Entry) bool { return strings.HasPrefix(e.Name, name) }
	t.Eventually("the restarted operator creates the children of MyWeb "+name, time.Minute, func() error {
		if !slices.ContainsFunc(t.Writes(mark), isNewest) {
			return errors.New("it has created none")
		}
		return nil
	})
	return isNewest
}

// unmanagedObjects counts what the operator puts into its queue while objects of the watched kinds come, change and go, and
// no MyWeb has their name. A MyWeb at the end shows that the count works.
func unmanagedObjects(t *suite.T) {
	if !t.Operator.Impl.Has("metrics-bind-address") {
		t.Skipf("the program has no --metrics-bind-address")
	}
	port, err := fixture.FreePort()
	t.Must(err, "find a port")
	address := fmt.Sprint("127.0.0.1:", port)
	renew(t)
	t.Operator.Kill()
	flags := t.Operator.Impl.With("--metrics-bind-address="+address, "--metrics-secure=false")
	t.Must(t.Operator.Start(t.Ctx, flags...), "start the operator with metrics")
	t.Eventually("the MyWebs of other checks are gone", time.Minute, func() error {
		webs, err := t.Fixture.Dynamic.Resource(suite.GVR(suite.Resource)).List(t.Ctx, metav1.ListOptions{})
		if err == nil && len(webs.Items) > 0 {
			err = fmt.Errorf("there are %d MyWebs", len(webs.Items))
		}
		return err
	})
	begin := time.Now()
	t.Eventually("the operator has got their last events", 0, func() error {
		at := t.Fixture.Ledger.Delivered(t.Operator.User.Name, "", "").Time
		if time.Since(begin) < time.Second || time.Since(at) < time.Second {
			return fmt.Errorf("the newest event came at %v", at)
		}
		return nil
	})
	before := enqueued(t, address)
	for _, k := range suite.Kinds {
		t.Make(k, suite.Unmanaged(k, "stranger"))
		t.Edit(k, "stranger", `{"metadata":{"annotations":{"example.com/note":"a"}}}`)
		t.Remove(k, "stranger")
	}
	t.Eventually("the operator has got all events", 0, func() error {
		at := t.Fixture.Ledger.Delivered(t.Operator.User.Name, t.Namespace, "").Time
		if at.IsZero() || time.Since(at) < time.Second {
			return fmt.Errorf("the newest event came at %v", at)
		}
		return nil
	})
	if n := enqueued(t, address) - before; n != 0 {
		t.Errorf("expected no reconcile, since no MyWeb has the name of the objects; but the operator enqueued %v", n)
	}
	t.Serve("web", suite.Sample())
	if enqueued(t, address) == before {
		t.Errorf("the metric workqueue_adds_total does not count the MyWeb that is served")
	}
}

// enqueued reads from the operator's metrics how often something was put into a queue.
func enqueued(t *suite.T, address string) (n float64) {
	t.Eventually("the operator serves metrics", 0, func() error {
		request, err := http.NewRequestWithContext(t.Ctx, http.MethodGet, "http://"+address+"/metrics", http.NoBody)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		n = 0
		lines := bufio.NewScanner(response.Body)
		for lines.Scan() {
			line := lines.Text()
			if !strings.HasPrefix(line, "workqueue_adds_total{") {
				continue
			}
			value, err := strconv.ParseFloat(line[strings.LastIndex(line, " ")+1:], 64)
			if err != nil {
				return err
			}
			n += value
		}
		return lines.Err()
	})
	return n
}

// quick is how long a rollout takes when the machine has time for it. Extra status writes during a slower rollout are
// not waste.
const quick = 4 * time.Second

// costs judges three MyWebs, because sometimes the pods of a MyWeb become ready all at once, and then one status
// write for each pod looks like one for all pods. When rollouts take long, it judges only the last MyWeb, and only if
// it judged no other.
func costs(t *suite.T, n int32) {
	judged, names := 0, []string{"web", "again", "and-again"}
	for i, name := range names {
		mark, begin := t.Mark(), time.Now()
		match := t.Mine(mark, wire.Get, wire.List)
		match.Namespace = "" // also reads of resources in all namespaces
		t.Create(name, replicas(n))
		t.Completed(name)
		took := time.Since(begin)
		t.AwaitQuiet(quiet)
		reads := slices.DeleteFunc(t.Fixture.Ledger.Entries(match), func(e ledger.Entry) bool {
			return e.Resource == "" || e.Namespace != "" && e.Namespace != t.Namespace
		})
		all, status := suite.About(t.Writes(mark), suite.Kinds...),
			suite.About(t.Writes(mark), suite.Resource, suite.StatusResource)
		if took > quick && len(status) > 2 && (judged > 0 || i < len(names)-1) {
			continue
		}
		judged++
		if len(all) != 3 {
			t.Errorf("expected 3 writes of children; but the operator sent %s:%s", suite.Count(len(all), "write"), suite.Lines(all))
		}
		if len(status) > 2 {
			t.Errorf("expected at most 2 writes of status; but the operator sent %s:%s", suite.Count(len(status), "write"), suite.Lines(status))
		}
		if len(reads) > 0 {
			t.Unexpected(reads, "expected no read, since all is in the caches; but the operator sent %s", suite.Count(len(reads), "read"))
		}
	}
}
