package checks

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"example.com/operator-workshop/scripts/examine/ledger"
	"example.com/operator-workshop/scripts/examine/proxy"
	"example.com/operator-workshop/scripts/examine/wire"
	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

// oldSnapshot starts the operator with MyWebs from before one of them was deleted and recreated with its name. Either
// a list returns the old state, and the watch after it hangs, or the initial events of a watch return it.
func oldSnapshot(list bool) func(*suite.T) {
	return func(t *suite.T) {
		renew(t)
		t.Serve("web", suite.Sample())
		past, err := t.Fixture.Dynamic.Resource(suite.MyWebs).List(t.Ctx, metav1.ListOptions{})
		t.Must(err, "list the MyWebs")
		t.Remove(suite.Resource, "web")
		t.Gone("web")
		t.AwaitGone(suite.Resource, "web", 0)
		web := t.Serve("web", page("<h1>of now</h1>"))
		before := t.Children(web)
		t.Operator.Kill()

		env := t.Operator.Env
		t.Operator.Env = append([]string{fmt.Sprintf("KUBE_FEATURE_WatchListClient=%v", !list)}, env...)
		t.Cleanup(func(context.Context) { t.Operator.Env = env })
		mark := t.Mark()
		stale := t.Everywhere(proxy.Rule{
			Match: ledger.Match{Verbs: []string{wire.List, wire.Watch}, Resources: []string{suite.Resource}},
			Do:    proxy.Call(retell(past))})
		t.Must(t.Operator.Restart(t.Ctx), "start the operator with an old snapshot")
		t.Pause(3 * time.Second)
		after := t.Children(web)
		t.SameChildren(before, after)
		t.Must(after.Follow(web.Spec), "compare the children with the MyWeb of now")
		wantMade(t, mark, 0, suite.Kinds...)
		stale.Release()
		endWatches(t, ended, suite.Resource) // an answer by a rule never continues by itself
		t.SetPage("web", "<h1>after it</h1>")
		inPlace(t, before, mark, 0)
		wantNoPanic(t, true)
	}
}

// retell answers with an old state: a list, and holds the watches after it; or the initial events of a watch.
func retell(past *unstructured.UnstructuredList) func(*proxy.Exchange) proxy.Action {
	var listed atomic.Bool
	return func(x *proxy.Exchange) proxy.Action {
		if x.Entry().Verb == wire.List {
			listed.Store(true)
			body, err := json.Marshal(past)
			if err != nil {
				panic(err) // it came as JSON
			}
			return proxy.Reply(proxy.Answer{Code: http.StatusOK, Body: body})
		}
		if listed.Load() {
			return proxy.Hold()
		}
		var body []byte
		for i := range past.Items {
			body = append(body, event("ADDED", &past.Items[i])...)
		}
		end := &unstructured.Unstructured{}
		end.SetAPIVersion(past.Items[0].GetAPIVersion())
		end.SetKind(past.Items[0].GetKind())
		end.SetResourceVersion(past.GetResourceVersion())
		end.SetAnnotations(map[string]string{"k8s.io/initial-events-end": "true"})
		return proxy.Reply(proxy.Answer{Code: http.StatusOK, Body: append(body, event("BOOKMARK", end)...), Open: true})
	}
}

func event(kind string, object *unstructured.Unstructured) []byte {
	data, err := wire.Values.Encode(kind, object)
	if err != nil {
		panic(err) // an object like any other
	}
	return data
}
