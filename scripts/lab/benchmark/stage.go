package benchmark

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/util/workqueue"

	"example.com/operator-workshop/scripts/lab/engine/fixture"
	"example.com/operator-workshop/scripts/lab/myweb/impl"
	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

const (
	// hands is how many requests the lab sends at once when it prepares objects.
	hands = 8
	// workers is how many MyWebs an operator handles at once, and the number of writers of the bare loop.
	workers = 4
)

// ports is large enough for every MyWeb of a big benchmark: the default range has 2768 ports.
const ports = "--service-node-port-range=20000-32767"

// children lists the resources of a MyWeb's children; a MyWeb owns one object of each.
var children = []schema.GroupVersionResource{suite.GVR(suite.ConfigMaps), suite.GVR(suite.Deployments),
	suite.GVR(suite.Services)}

// A stage is a fixture for time measurements: only an API server, and operators that send their requests directly to
// it.
type stage struct {
	*fixture.Fixture
	meta      metadata.Interface
	operators map[string]*suite.Operator // by the name of the implementation

	noStatus   bool // the operator reports no status
	apiServer  int  // process ID of the API server
	namespaces int
}

// stage starts a fixture, ends its controllers permanently, and creates the users of the implementations.
func (b *bench) stage(ctx context.Context, impls []impl.Implementation) (s *stage, err error) {
	b.note("Times and memory are measured past the proxy, on an API server alone: the controllers, the scheduler and " +
		"the simulated nodes are ended, and nothing removes orphans. " +
		"Where a MyWeb has to become completed, the lab stands in for the Deployment controller: all pods of a Deployment " +
		"are ready at once.")
	w, err := b.fixture(ctx, impls, ports)
	if err != nil {
		return nil, err
	}
	s = &stage{Fixture: w, operators: map[string]*suite.Operator{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.Stop())
		}
	}()
	if s.meta, err = metadata.NewForConfig(w.Config); err != nil {
		return nil, err
	}
	for _, i := range impls {
		i = i.WithoutWebhooks()
		if s.operators[i.Name], err = suite.NewOperator(ctx, w, i, "bench-"+i.Name); err != nil {
			return nil, err
		}
		s.operators[i.Name].User.Kubeconfig = s.operators[i.Name].User.Direct
	}
	for _, component := range []string{fixture.ControllerManager, fixture.Scheduler, fixture.Kubelets} {
		if err := w.Signal(component, syscall.SIGKILL); err != nil {
			return nil, err
		}
	}
	s.apiServer, err = w.PID(fixture.APIServer)
	return s, err
}

// inNamespace makes a namespace for an experiment and empties it afterwards.
func (s *stage) inNamespace(ctx context.Context, do func(namespace string) error) error {
	ns, err := s.newNamespace(ctx)
	if err != nil {
		return err
	}
	err = do(ns)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return errors.Join(err, s.clear(ctx, ns))
}

// newNamespace makes a namespace.
func (s *stage) newNamespace(ctx context.Context) (string, error) {
	s.namespaces++
	name := fmt.Sprintf("bench-%d", s.namespaces)
	return name, s.Namespace(ctx, name)
}

func webName(i int) string { return fmt.Sprintf("web-%d", i) }

// create makes the MyWebs with the numbers from … to-1.
func create(ctx context.Context, w *fixture.Fixture, namespace string, from,
	to int) ([]*unstructured.Unstructured, error) {
	made := make([]*unstructured.Unstructured, to-from)
	return made, parallel(hands, to-from, func(i int) (err error) {
		made[i], err = createOne(ctx, w, namespace, webName(from+i))
		return err
	})
}

func createOne(ctx context.Context, w *fixture.Fixture, namespace, name string) (*unstructured.Unstructured, error) {
	web, err := suite.NewWeb(name, suite.Sample())
	if err != nil {
		return nil, err
	}
	return w.Dynamic.Resource(suite.MyWebs).Namespace(namespace).Create(ctx, web, metav1.CreateOptions{})
}

// turnPages changes the page of the MyWebs with the numbers up to n.
func turnPages(ctx context.Context, w *fixture.Fixture, namespace string, n int) error {
	return parallel(hands, n, func(i int) error {
		_, err := w.Dynamic.Resource(suite.MyWebs).Namespace(namespace).Patch(ctx, webName(i), types.MergePatchType,
			[]byte(`{"spec":{"pageContentHtml":"<h1>Changed</h1>"}}`), metav1.PatchOptions{})
		return err
	})
}

// clear removes the MyWebs of a namespace and their children, because no garbage collector runs here. No operator may
// run.
func (s *stage) clear(ctx context.Context, namespace string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 5*time.Minute, errors.New("5 min are over"))
	defer cancel()
	background := metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}
	all := append([]schema.GroupVersionResource{suite.MyWebs}, children...)
	err := parallel(len(all), len(all), func(i int) error {
		for {
			err := s.meta.Resource(all[i]).Namespace(namespace).DeleteCollection(ctx, background, metav1.ListOptions{})
			if !apierrors.IsTimeout(err) { // deleting thousands takes longer than the limit of one request
				return err
			}
		}
	})
	if err != nil {
		return fmt.Errorf("clear %s: %w", namespace, err)
	}
	for _, r := range all {
		list, err := s.meta.Resource(r).Namespace(namespace).List(ctx, metav1.ListOptions{Limit: 1})
		if err != nil {
			return fmt.Errorf("clear %s: %w", namespace, err)
		}
		if len(list.Items) > 0 {
			return fmt.Errorf("clear %s: %s %s is still there: does it have a finalizer? %v",
				namespace, r.Resource, list.Items[0].Name, list.Items[0].Finalizers)
		}
	}
	return nil
}

// parallel calls do with 0 … n-1, at most atOnce calls at a time, and returns the errors. After an error it starts no
// more calls.
func parallel(atOnce, n int, do func(i int) error) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	errs := make([]error, n)
	workqueue.ParallelizeUntil(ctx, atOnce, n, func(i int) {
		if errs[i] = do(i); errs[i] != nil {
			cancel()
		}
	})
	return errors.Join(errs...)
}

// launch starts an operator with the usual number of workers.
func (s *stage) launch(name string) (*fixture.Process, error) {
	o := s.operators[name]
	return o.Launch(o.Impl.With(fmt.Sprint("--max-concurrent-reconciles=", workers))...)
}

// auditEnd is the current end of the audit log.
func (s *stage) auditEnd() (int64, error) {
	info, err := os.Stat(s.AuditLog())
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// asked is when an operator first requested the MyWebs, since a place in the audit log: by an answered request, or by a
// watch that is open.
func (s *stage) asked(since int64, name string) (at time.Time, err error) {
	events, _, err := s.Audit(since)
	for _, e := range events {
		begun := e.Stage == "ResponseStarted"
		ofMyWebs := e.ObjectRef != nil && e.ObjectRef.Resource == suite.MyWebs.Resource && begun == (e.Verb == "watch")
		if ofMyWebs && e.User.Username == s.operators[name].User.Name && (at.IsZero() ||
			e.RequestReceivedTimestamp.Before(at)) {
			at = e.RequestReceivedTimestamp
		}
	}
	if err == nil && at.IsZero() {
		err = fmt.Errorf("%s never asked for MyWebs", name)
	}
	return at, err
}

// lastWords are the last lines that a process printed.
func lastWords(p *fixture.Process) string { return strings.Join(p.LastLines(5, ""), "\n") }
