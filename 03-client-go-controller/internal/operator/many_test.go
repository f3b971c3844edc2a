package operator

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/onsi/gomega"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	webv1 "example.com/operator-workshop/03-client-go-controller/pkg/apis/myweb/v1"
	"example.com/operator-workshop/03-client-go-controller/test/programtest"
)

const (
	many       = 200
	limit      = 20 // requests a second
	concurrent = 4  // as many as the program handles at once
)

// Without a limit of the client's own, MyWebs are served as fast as the API server can: at least ten times
// as fast as with twenty requests a second, or, on a machine that is too busy for that, not much slower than
// a loop that knows nothing and just writes. Measured until each MyWeb has its children and a first status, on an
// API server alone: controllers and simulated nodes would need the processor for themselves.
func TestThereIsNoHiddenLimit(t *testing.T) {
	f, kubeconfig := newServer(t, crd)
	var p *process
	limited := f.untilReported("limited", func() {
		p = launch(t, user, kubeconfig, fmt.Sprint("--kube-api-qps=", limit), fmt.Sprint("--kube-api-burst=", limit))
	})
	p.Stop()
	template := f.template("limited")
	f.remove("limited")
	before := f.untilReported("before", func() { f.writeAll("before", template) })
	f.remove("before")
	unlimited := f.untilReported("unlimited", func() { p = launch(t, user, kubeconfig) })
	p.Stop()
	f.remove("unlimited")
	// A machine that was busy for a while is no fault of the operator: the slower loop of the two counts.
	bare := max(before, f.untilReported("bare", func() { f.writeAll("bare", template) }))

	ratio := limited.Seconds() / unlimited.Seconds()
	t.Logf("children and a first status of %d MyWebs: %.1f s with --kube-api-qps=%d, %.1f s without: %.1f times as "+
		"fast; a bare loop: %.1f s",
		many, limited.Seconds(), limit, unlimited.Seconds(), ratio, bare.Seconds())
	if ratio < 10 && unlimited > 3*bare {
		t.Errorf("only %.1f times as fast as with --kube-api-qps=%d, and less than a third as fast as a bare loop", ratio,
			limit)
	}
}

// untilReported makes many MyWebs, begins something, and returns how long it takes until all have a status.
func (f *fixture) untilReported(namespace string, begin func()) time.Duration {
	f.t.Helper()
	f.createMany(f.namespace(namespace), 1)
	list, err := f.web.OperatorV1().MyWebs(namespace).List(f.t.Context(), metav1.ListOptions{})
	f.Expect(err).NotTo(gomega.HaveOccurred())
	changes, err := f.web.OperatorV1().MyWebs(namespace).Watch(f.t.Context(),
		metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	f.Expect(err).NotTo(gomega.HaveOccurred())
	defer changes.Stop()
	start, reported := time.Now(), map[string]bool{}
	begin()
	for web := range watched(changes) {
		if web.Status.ObservedGeneration == web.Generation {
			reported[web.Name] = true
		}
		if len(reported) == many {
			return time.Since(start)
		}
	}
	f.t.Fatalf("the watch ended with %d of %d MyWebs reported", len(reported), many)
	return 0
}

// watched yields the MyWebs that a watch shows.
func watched(w watch.Interface) func(yield func(*webv1.MyWeb) bool) {
	return func(yield func(*webv1.MyWeb) bool) {
		for e := range w.ResultChan() {
			if web, ok := e.Object.(*webv1.MyWeb); ok && !yield(web) {
				return
			}
		}
	}
}

// createMany makes many MyWebs, while no operator runs.
func (f *fixture) createMany(namespace string, replicas int32) {
	inParallel(func(name string) {
		f.create(namespace, name, func(spec *webv1.MyWebSpec) { spec.Replicas = &replicas })
	})
}

// inParallel calls do with many names, some at once.
func inParallel(do func(name string)) {
	var all sync.WaitGroup
	for worker := range concurrent {
		all.Go(func() {
			for i := worker; i < many; i += concurrent {
				do(fmt.Sprint("web-", i))
			}
		})
	}
	all.Wait()
}

// template returns what the operator applied for one of the MyWebs of a namespace, by resource.
func (f *fixture) template(namespace string) map[string]string {
	f.t.Helper()
	found := map[string]string{}
	for resource, client := range f.clients() {
		data, err := client.Get().Namespace(namespace).Resource(resource).Name("web-0").Do(f.t.Context()).Raw()
		f.Expect(err).NotTo(gomega.HaveOccurred())
		var obj map[string]any
		f.Expect(json.Unmarshal(data, &obj)).To(gomega.Succeed())
		meta := obj["metadata"].(map[string]any)
		for _, field := range []string{
			"uid", "resourceVersion", "managedFields", "creationTimestamp", "generation", "namespace"} {
			delete(meta, field)
		}
		delete(obj, "status")
		if spec, ok := obj["spec"].(map[string]any); ok && resource == "services" {
			delete(spec, "clusterIP")
			delete(spec, "clusterIPs")
			delete(spec["ports"].([]any)[0].(map[string]any), "nodePort")
		}
		data, err = json.Marshal(obj)
		f.Expect(err).NotTo(gomega.HaveOccurred())
		found[resource] = string(data)
	}
	return found
}

// clients are those of the children's resources.
func (f *fixture) clients() map[string]rest.Interface {
	return map[string]rest.Interface{"configmaps": f.kube.CoreV1().RESTClient(),
		"deployments": f.kube.AppsV1().RESTClient(),
		"services":    f.kube.CoreV1().RESTClient()}
}

// writeAll writes what an operator would, as often, without reading anything.
func (f *fixture) writeAll(namespace string, template map[string]string) {
	clients := f.clients()
	inParallel(func(name string) {
		for resource, obj := range template {
			f.Expect(clients[resource].Patch(types.ApplyPatchType).Namespace(namespace).Resource(resource).Name(name).
				Param("fieldManager", user).Body([]byte(strings.ReplaceAll(obj, "web-0", name))).
				Do(f.t.Context()).Error()).To(gomega.Succeed())
		}
		web := f.get(namespace, name)
		web.Status.ObservedGeneration = web.Generation
		_, err := f.web.OperatorV1().MyWebs(namespace).UpdateStatus(f.t.Context(), web, metav1.UpdateOptions{})
		f.Expect(err).NotTo(gomega.HaveOccurred())
	})
}

// remove removes many MyWebs and their Services: this API server has but 254 addresses for them, and no
// garbage collector.
func (f *fixture) remove(namespace string) {
	inParallel(func(name string) {
		f.Expect(f.web.OperatorV1().MyWebs(namespace).Delete(f.t.Context(), name, metav1.DeleteOptions{})).
			To(gomega.Succeed())
		f.Expect(f.kube.CoreV1().Services(namespace).Delete(f.t.Context(), name, metav1.DeleteOptions{})).To(gomega.Succeed())
	})
}

// In steady state nothing is written, and nothing after a restart, whichever way the caches sync.
func TestNothingIsWrittenInSteadyStateAndAfterARestart(t *testing.T) {
	f := newFixture(t)
	kubeconfig := f.operatorUser(user)
	f.createMany(f.namespace("many"), 1)
	start := time.Now()
	p := started(t, user, kubeconfig)
	f.Eventually(func() int { return f.completed("many") }, "120s", "200ms").Should(gomega.Equal(many))
	t.Logf("%d MyWebs with a pod each were completed %.1f s after the operator started", many, time.Since(start).Seconds())
	p.idle()
	before := f.changes()
	f.Consistently(f.changes, "5s", "500ms").Should(gomega.Equal(before), "in steady state")
	p.Stop()
	for _, env := range []string{"KUBE_FEATURE_WatchListClient=true", "KUBE_FEATURE_WatchListClient=false"} {
		p = started(t, user, kubeconfig, env)
		p.idle()
		handled := p.metric(`myweb_sync_total{result="success"}`)
		p.Stop()
		t.Logf("%d MyWebs were reconciled %g times after a restart with %s: %d writes", many, handled,
			env, f.changes()-before)
		f.Expect(handled).To(gomega.BeNumerically(">=", many))
		f.Expect(f.changes()).To(gomega.Equal(before), "after a restart")
	}
}

// changes is how many requests of the operator asked for a change, leases apart.
func (f *fixture) changes() int {
	return len(programtest.Filter(f.settled(user), programtest.Request.Changes))
}

// completed is how many MyWebs of a namespace are fully served.
func (f *fixture) completed(namespace string) (n int) {
	list, err := f.web.OperatorV1().MyWebs(namespace).List(f.t.Context(), metav1.ListOptions{ResourceVersion: "0"})
	f.Expect(err).NotTo(gomega.HaveOccurred())
	for _, web := range list.Items {
		if completed(&web) {
			n++
		}
	}
	return n
}
