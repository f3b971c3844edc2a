package benchmark

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"

	"example.com/operator-workshop/scripts/lab/engine/fixture"
	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

// A goal is the state that a MyWeb must reach.
type goal func(*standing) bool

// converged MyWebs have their three children and a first status.
func converged(s *standing) bool { return s.observed > 0 && len(s.children) == len(children) }

// complete MyWebs have their three children.
func complete(s *standing) bool { return len(s.children) == len(children) }

// served MyWebs are completed for a generation.
func served(generation int64) goal {
	return func(s *standing) bool { return s.completed && s.observed == s.generation && s.generation >= generation }
}

// A standing is the state of a MyWeb as the watches reported it.
type standing struct {
	children             map[string]bool
	generation, observed int64
	completed            bool
}

// A board shows which MyWebs of a namespace have reached a goal, and when. It learns this from watches of the lab.
type board struct {
	namespace string
	goal      goal
	stop      context.CancelFunc
	watching  sync.WaitGroup

	mu        sync.Mutex
	standings map[string]*standing
	reached   map[string]time.Time
	changed   chan struct{} // closed and replaced when a MyWeb reaches a goal
}

// newBoard begins to watch a namespace. close ends it.
func newBoard(ctx context.Context, w *fixture.Fixture, namespace string, g goal) (*board, error) {
	meta, err := metadata.NewForConfig(w.Config)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	b := &board{namespace: namespace, goal: g, stop: cancel, standings: map[string]*standing{},
		reached: map[string]time.Time{}, changed: make(chan struct{})}
	err = follow(ctx, &b.watching, func() (watch.Interface, error) {
		return w.Dynamic.Resource(suite.MyWebs).Namespace(namespace).Watch(ctx, metav1.ListOptions{})
	}, b.web)
	for _, r := range children {
		err = errors.Join(err, follow(ctx, &b.watching, func() (watch.Interface, error) {
			return meta.Resource(r).Namespace(namespace).Watch(ctx, metav1.ListOptions{})
		}, func(e watch.Event) { b.child(r.Resource, e) }))
	}
	if err != nil {
		b.close()
		return nil, fmt.Errorf("watch %s: %w", namespace, err)
	}
	return b, nil
}

func (b *board) close() {
	b.stop()
	b.watching.Wait()
}

// follow opens a watch and passes its events on until ctx ends, in a goroutine that the group waits for. The API
// server ends a watch that cannot keep up; then follow opens another watch, which begins with all existing objects.
func follow(ctx context.Context, group *sync.WaitGroup, open func() (watch.Interface, error),
	handle func(watch.Event)) error {
	w, err := open()
	if err != nil {
		return err
	}
	group.Go(func() {
		for {
			for e := range w.ResultChan() {
				if e.Type != watch.Error {
					handle(e)
				}
			}
			w.Stop()
			for err = errors.New("not open"); err != nil; w, err = open() {
				if fixture.Pause(ctx, 50*time.Millisecond) != nil {
					return
				}
			}
		}
	})
	return nil
}

func (b *board) web(e watch.Event) {
	u, ok := e.Object.(*unstructured.Unstructured)
	if !ok {
		return
	}
	observed, _, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration")
	completed, _, _ := unstructured.NestedBool(u.Object, "status", "completed")
	b.change(u.GetName(), func(s *standing) {
		s.generation, s.observed, s.completed = u.GetGeneration(), observed, completed
	})
}

func (b *board) child(resource string, e watch.Event) {
	o, ok := e.Object.(metav1.Object)
	if !ok {
		return
	}
	b.change(o.GetName(), func(s *standing) {
		if s.children[resource] = true; e.Type == watch.Deleted {
			delete(s.children, resource)
		}
	})
}

func (b *board) change(name string, f func(*standing)) {
	now := time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.standings[name]
	if s == nil {
		s = &standing{children: map[string]bool{}}
		b.standings[name] = s
	}
	f(s)
	if _, ok := b.reached[name]; !ok && b.goal(s) {
		b.reached[name] = now
		b.notify()
	}
}

func (b *board) notify() {
	close(b.changed)
	b.changed = make(chan struct{})
}

// await returns when n MyWebs have reached the goal. p is the operator that works for it; nil means no operator.
func (b *board) await(ctx context.Context, n int, within time.Duration, p *fixture.Process) error {
	late := time.NewTimer(within)
	defer late.Stop()
	var ended <-chan struct{}
	if p != nil {
		ended = p.Ended()
	}
	for {
		b.mu.Lock()
		have, changed := len(b.reached), b.changed
		b.mu.Unlock()
		if have >= n {
			return nil
		}
		select {
		case <-changed:
		case <-ended:
			return fmt.Errorf("%d of %d MyWebs were done when the operator %v:\n%s", have, n, p.Exit(), lastWords(p))
		case <-late.C:
			err := fmt.Errorf("after %v only %d of %d MyWebs are done", within, have, n)
			if p != nil {
				err = fmt.Errorf("%w; the operator's last words:\n%s", err, lastWords(p))
			}
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// when is the moment at which a MyWeb reached the goal.
func (b *board) when(name string) time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.reached[name]
}

// took is the time from a moment until the last MyWeb reached the goal.
func (b *board) took(since time.Time) (took time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, at := range b.reached {
		took = max(took, at.Sub(since))
	}
	return took
}
