package benchmark

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"

	"example.com/operator-workshop/scripts/examine/fixture"
	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

// hands is how many requests the lab sends at once when it prepares objects.
const hands = 8

func webName(i int) string { return fmt.Sprintf("web-%d", i) }

// create makes the MyWebs with the numbers from … to-1.
func create(ctx context.Context, w *fixture.Fixture, namespace string, from, to int) error {
	return parallel(hands, to-from, func(i int) error {
		web, err := suite.NewWeb(webName(from+i), suite.Sample())
		if err == nil {
			_, err = w.Dynamic.Resource(suite.MyWebs).Namespace(namespace).Create(ctx, web, metav1.CreateOptions{})
		}
		return err
	})
}

// turnPages changes the page of the MyWebs with the numbers up to n.
func turnPages(ctx context.Context, w *fixture.Fixture, namespace string, n int) error {
	return parallel(hands, n, func(i int) error {
		_, err := w.Dynamic.Resource(suite.MyWebs).Namespace(namespace).Patch(ctx, webName(i), types.MergePatchType,
			[]byte(`{"spec":{"pageContentHtml":"<h1>Changed</h1>"}}`), metav1.PatchOptions{})
		return err
	})
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

// A goal counts the MyWebs of a namespace that have reached a state.
type goal func(ctx context.Context, w *fixture.Fixture, namespace string) (int, error)

// served counts the MyWebs that are completed for their newest generation, which is at least the given one.
func served(generation int64) goal {
	return func(ctx context.Context, w *fixture.Fixture, namespace string) (n int, err error) {
		webs, err := w.Dynamic.Resource(suite.MyWebs).Namespace(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return 0, err
		}
		for _, u := range webs.Items {
			if isServed(&u, generation) {
				n++
			}
		}
		return n, nil
	}
}

func isServed(web *unstructured.Unstructured, generation int64) bool {
	observed, _, _ := unstructured.NestedInt64(web.Object, "status", "observedGeneration")
	completed, _, _ := unstructured.NestedBool(web.Object, "status", "completed")
	return completed && observed == web.GetGeneration() && observed >= generation
}

// complete counts the MyWebs that have their children: there is one of each kind for a MyWeb. One object is requested,
// because the API server adds the number of the others.
func complete(ctx context.Context, w *fixture.Fixture, namespace string) (int, error) {
	var numbers []int
	for _, resource := range []string{suite.ConfigMaps, suite.Deployments, suite.Services} {
		list, err := w.Dynamic.Resource(suite.GVR(resource)).Namespace(namespace).List(ctx, metav1.ListOptions{Limit: 1})
		if err != nil {
			return 0, err
		}
		numbers = append(numbers, len(list.Items)+int(ptr.Deref(list.GetRemainingItemCount(), 0)))
	}
	return min(numbers[0], numbers[1], numbers[2]), nil
}

// await returns when n MyWebs have reached a goal. p is the operator that works for it.
func await(ctx context.Context, w *fixture.Fixture, namespace string, n int, g goal, within time.Duration,
	p *fixture.Process) error {
	ended, stop := p.Context(ctx)
	defer stop()
	err := fixture.Eventually(ended, within, func() error {
		have, err := g(ended, w, namespace)
		if err == nil && have < n {
			err = fmt.Errorf("only %d of %d MyWebs are done", have, n)
		}
		return err
	})
	if err != nil {
		err = fmt.Errorf("%w; the operator's last words:\n%s", err, lastWords(p))
	}
	return err
}

// lastWords are the last lines that a process printed.
func lastWords(p *fixture.Process) string { return strings.Join(p.LastLines(5, ""), "\n") }
