// Package steps builds the controller up, a part at a time. Each step runs the parts of the real program;
// there is no second copy of anything.
package steps

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"example.com/operator-workshop/03-client-go-controller/internal/controller"
	"example.com/operator-workshop/03-client-go-controller/internal/operator"
	webv1 "example.com/operator-workshop/03-client-go-controller/pkg/apis/myweb/v1"
	"example.com/operator-workshop/03-client-go-controller/pkg/generated/clientset/versioned"
)

// A step is one stage of the controller.
type step struct {
	name, what string
	run        func(ctx context.Context, w *world) error
}

// steps in the order of the page.
var steps = []step{
	{"events", "say what an informer tells of MyWebs", events},
	{"queue", "put a queue behind it, and a worker who takes two seconds for each", queue},
	{"child", "let sync apply one child, the ConfigMap", func(ctx context.Context, w *world) error {
		return w.control(ctx, "ConfigMap")
	}},
	{"children", "let sync apply all three", func(ctx context.Context, w *world) error {
		return w.control(ctx, "ConfigMap", "Deployment", "Service")
	}},
}

// world is what every step needs.
type world struct {
	kube   kubernetes.Interface
	web    versioned.Interface
	caches *controller.Caches
	out    *lines
}

// Run runs one step on the API server of cfg until ctx ends. What it does is said to out.
func Run(ctx context.Context, cfg *rest.Config, name string, out io.Writer) error {
	i := slices.IndexFunc(steps, func(s step) bool { return s.name == name })
	if i < 0 {
		return fmt.Errorf("there is no step %q:\n%s", name, Usage())
	}
	w := &world{out: &lines{w: out}}
	klog.SetSlogLogger(slog.New(slog.NewTextHandler(w.out, &slog.HandlerOptions{ReplaceAttr: brief})))
	var err error
	if w.kube, err = kubernetes.NewForConfig(cfg); err != nil {
		return err
	}
	if w.web, err = versioned.NewForConfig(cfg); err != nil {
		return err
	}
	if err := operator.CRDInstalled(ctx, w.web, cfg.Host); err != nil {
		return err
	}
	if w.caches, err = controller.NewCaches(w.kube, w.web, controller.Trim); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer w.caches.Shutdown()
	defer stop()
	return steps[i].run(ctx, w)
}

// Usage names the steps.
func Usage() string {
	var b strings.Builder
	for _, s := range steps {
		fmt.Fprintf(&b, "  %-10s %s\n", s.name, s.what)
	}
	return b.String()
}

// events: an informer fills a cache and tells of every change in it.
func events(ctx context.Context, w *world) error {
	say := func(what string) func(any) {
		return func(obj any) {
			web := obj.(*webv1.MyWeb)
			w.out.say("%-8s %s, generation %d", what, cache.MetaObjectToName(web), web.Generation)
		}
	}
	_, err := w.caches.Webs.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    say("ADDED"),
		UpdateFunc: func(_, new any) { say("UPDATED")(new) },
		DeleteFunc: func(obj any) {
			if lost, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = lost.Obj
			}
			say("DELETED")(obj)
		},
	})
	return errors.Join(err, w.follow(ctx))
}

// queue: names go into a queue, one worker takes them out. What arrives while he is busy is one job.
func queue(ctx context.Context, w *world) error {
	q := controller.NewQueue()
	context.AfterFunc(ctx, q.ShutDown)
	var mu sync.Mutex
	events := map[cache.ObjectName]int{}
	err := w.caches.Handle(func(name cache.ObjectName) {
		mu.Lock()
		events[name]++
		mu.Unlock()
		q.Add(name)
	})
	if err != nil {
		return err
	}
	go func() {
		for name, closed := q.Get(); !closed; name, closed = q.Get() {
			mu.Lock()
			w.out.say("handling %s, which was woken %d times", name, events[name])
			delete(events, name)
			mu.Unlock()
			select {
			case <-time.After(2 * time.Second):
			case <-ctx.Done():
			}
			q.Done(name)
		}
	}()
	return w.follow(ctx)
}

// control runs the controller, limited to children of some kinds.
func (w *world) control(ctx context.Context, kinds ...string) error {
	c, err := controller.New(w.kube, w.web, w.caches, nil, controller.Options{Only: kinds})
	if err != nil {
		return err
	}
	w.caches.Start(ctx)
	if w.caches.Wait(ctx) {
		c.Run(ctx, 1)
	}
	return nil
}

// follow fills the caches and follows the API server until ctx ends.
func (w *world) follow(ctx context.Context) error {
	w.caches.Start(ctx)
	if w.caches.Wait(ctx) {
		w.out.say("the caches are filled")
	}
	<-ctx.Done()
	return nil
}

// brief leaves the time out of a log line: a page that shows it cannot know it.
func brief(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}

// lines keeps lines of several goroutines whole.
type lines struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

func (l *lines) say(format string, args ...any) {
	fmt.Fprintf(l, format+"\n", args...)
}
