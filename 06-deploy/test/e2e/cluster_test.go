//go:build kind

package e2e

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"sync"
	"time"

	"github.com/go-logr/logr"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// cluster is a client, for requests that must be quick or are counted.
var cluster = sync.OnceValue(func() client.Client {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		panic(err)
	}
	config.QPS = -1
	ctrl.SetLogger(logr.Discard())
	c, err := client.New(config, client.Options{})
	if err != nil {
		panic(err)
	}
	return c
})

func myweb(name string) *unstructured.Unstructured {
	web := &unstructured.Unstructured{}
	web.SetGroupVersionKind(schema.GroupVersionKind{Group: "operator.k8s-summit.org", Version: "v1", Kind: "MyWeb"})
	web.SetNamespace("default")
	web.SetName(name)
	return web
}

// create makes a MyWeb of one pod and waits until it serves.
func (w *suite) create(names ...string) {
	w.Helper()
	for _, name := range names {
		web := myweb(name)
		web.Object["spec"] = map[string]any{
			"image": "nginx:1.29-alpine", "replicas": int64(1), "pageContentHtml": "<p>" + name + "</p>"}
		w.must(cluster().Create(w.Context(), web))
	}
	for _, name := range names {
		w.kubectl("wait", "web/"+name, "--for=jsonpath={.status.completed}=true", "--timeout=120s")
	}
}

// write gives a MyWeb another page.
func write(ctx context.Context, name, page string) error {
	patch := fmt.Appendf(nil, `{"spec":{"pageContentHtml":%q}}`, page)
	return cluster().Patch(ctx, myweb(name), client.RawPatch("application/merge-patch+json", patch))
}

// page returns the page that the operator wrote into the ConfigMap of a MyWeb.
func page(ctx context.Context, name string) (string, error) {
	made := &corev1.ConfigMap{}
	err := cluster().Get(ctx, client.ObjectKey{Namespace: "default", Name: name}, made)
	return made.Data["index.html"], err
}

// children are values that must not change without a reason: the UIDs of pods, and the generations of Deployments.
func (w *suite) children(names ...string) (pods map[string]string, generations map[string]int64) {
	w.Helper()
	pods, generations = map[string]string{}, map[string]int64{}
	for _, name := range names {
		list := &corev1.PodList{}
		w.must(cluster().List(w.Context(), list, client.InNamespace("default"),
			client.MatchingLabels{"app.kubernetes.io/instance": name}))
		for _, pod := range list.Items {
			if pod.DeletionTimestamp != nil {
				continue
			}
			pods[name] += string(pod.UID)
			for _, container := range pod.Status.ContainerStatuses {
				pods[name] += fmt.Sprintf(", restarted %d times", container.RestartCount)
			}
		}
		made := &appsv1.Deployment{}
		w.must(cluster().Get(w.Context(), client.ObjectKey{Namespace: "default", Name: name}, made))
		generations[name] = made.Generation
	}
	return pods, generations
}

// leader returns the holder of the lease: a process, whose name begins with the name of its pod.
func (w *suite) leader() string {
	w.Helper()
	lease := &coordinationv1.Lease{}
	w.must(cluster().Get(w.Context(), client.ObjectKey{Namespace: operator, Name: operator}, lease))
	return ptr.Deref(lease.Spec.HolderIdentity, "")
}

// ready waits until the operator's Deployment is as it was asked for.
func (w *suite) ready() {
	w.Helper()
	w.kubectl("-n", operator, "rollout", "status", "deployment/"+operator, "--timeout=120s")
}

// A visitor changes the page of a MyWeb again and again, and measures how long each change took to arrive.
type visitor struct {
	name    string
	stop    context.CancelFunc
	ended   chan struct{}
	mu      sync.Mutex
	longest time.Duration
	count   int
	err     error
}

func (w *suite) visit(name string) *visitor {
	ctx, stop := context.WithCancel(w.Context())
	v := &visitor{name: name, stop: stop, ended: make(chan struct{})}
	go func() {
		defer close(v.ended)
		for n := 0; ctx.Err() == nil; n++ {
			took, err := once(context.WithoutCancel(ctx), name,
				fmt.Sprintf("<p>visit %d at %s</p>", n, time.Now().Format(time.RFC3339Nano)))
			v.mu.Lock()
			v.longest, v.count, v.err = max(v.longest, took), v.count+1, err
			v.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return v
}

// once makes one change and waits, at most a minute, until it has arrived.
func once(ctx context.Context, name, text string) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	began := time.Now()
	if err := write(ctx, name, text); err != nil {
		return 0, fmt.Errorf("a change was refused: %w", err)
	}
	for {
		if got, err := page(ctx, name); err != nil {
			return 0, err
		} else if got == text {
			return time.Since(began), nil
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// end ends the visits and returns how many there were, and the longest.
func (v *visitor) end() (count int, longest time.Duration, err error) {
	v.stop()
	<-v.ended
	return v.count, v.longest, v.err
}

// A writer changes one of several MyWebs each second and remembers what it asked for. A MyWeb whose pods are being
// replaced is left alone: a node that starts pods slowly would get more and more of them.
type writer struct {
	stop  context.CancelFunc
	ended chan struct{}
	asked map[string]int // how often
	last  map[string]string
	err   error
}

func (w *suite) keepChanging(names ...string) *writer {
	ctx, stop := context.WithCancel(w.Context())
	r := &writer{stop: stop, ended: make(chan struct{}), asked: map[string]int{}, last: map[string]string{}}
	go func() {
		defer close(r.ended)
		for n := 0; ; n++ {
			name := names[n%len(names)]
			var rolling bool
			if rolling, r.err = isRolling(context.WithoutCancel(ctx), name); r.err != nil {
				return
			}
			if !rolling {
				text := fmt.Sprintf("<p>%s, change %d of %s</p>", name, n, time.Now().Format(time.RFC3339Nano))
				if r.err = write(context.WithoutCancel(ctx), name, text); r.err != nil {
					return
				}
				r.asked[name]++
				r.last[name] = text
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(time.Second):
			}
		}
	}()
	return r
}

// isRolling reports whether pods of a MyWeb are being replaced.
func isRolling(ctx context.Context, name string) (bool, error) {
	made := &appsv1.Deployment{}
	err := cluster().Get(ctx, client.ObjectKey{Namespace: "default", Name: name}, made)
	want, status := ptr.Deref(made.Spec.Replicas, 1), made.Status
	return status.ObservedGeneration != made.Generation || status.UpdatedReplicas != want || status.Replicas != want ||
		status.AvailableReplicas != want, err
}

// settled ends the changes and waits until the last of each MyWeb has arrived and its pods have it. It returns how
// many changes there were.
func (r *writer) settled(w *suite) (changes int) {
	w.Helper()
	r.stop()
	<-r.ended
	w.must(r.err)
	if len(r.last) == 0 {
		w.Fatal("no MyWeb was changed")
	}
	for name, text := range r.last {
		changes += r.asked[name]
		w.eventually(30*time.Second, func() error {
			got, err := page(w.Context(), name)
			if err == nil && got != text {
				err = fmt.Errorf("%s serves %q, and %q was asked for last", name, got, text)
			}
			return err
		})
		w.kubectl("rollout", "status", "deployment/"+name, "--timeout=90s")
		w.eventually(30*time.Second, func() error {
			web := myweb(name)
			if err := cluster().Get(w.Context(), client.ObjectKeyFromObject(web), web); err != nil {
				return err
			}
			seen, _, _ := unstructured.NestedInt64(web.Object, "status", "observedGeneration")
			completed, _, _ := unstructured.NestedBool(web.Object, "status", "completed")
			if seen != web.GetGeneration() || !completed {
				return fmt.Errorf("%s: generation %d, status of %d, completed %t", name, web.GetGeneration(), seen, completed)
			}
			return nil
		})
	}
	return changes
}

// dryRun asks the API server, and so the webhooks, without making anything.
func dryRun(ctx context.Context, name string) (*unstructured.Unstructured, error) {
	web := myweb(name)
	web.Object["spec"] = map[string]any{"image": "nginx:1.29-alpine"}
	return web, cluster().Create(ctx, web, &client.CreateOptions{DryRun: []string{metav1.DryRunAll}})
}

var forwarding = regexp.MustCompile(`127\.0\.0\.1:(\d+) ->`)

// scrape asks a replica for its metrics with a token, or without when that is empty. The token goes into a header:
// command lines can be read by all.
func scrape(ctx context.Context, token string) (code int, text string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	forward := exec.CommandContext(ctx, "kubectl", "port-forward", "--address=127.0.0.1", "-n", operator,
		"deployment/"+operator, ":8443")
	out, err := forward.StdoutPipe()
	if err != nil {
		return 0, "", err
	}
	if err := forward.Start(); err != nil {
		return 0, "", err
	}
	defer func() { cancel(); _ = forward.Wait() }() // it was killed
	line, err := bufio.NewReader(out).ReadString('\n')
	port := forwarding.FindStringSubmatch(line)
	if port == nil {
		return 0, "", fmt.Errorf("forward a port to the operator: %q: %w", line, err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://127.0.0.1:"+port[1]+"/metrics", nil)
	if err != nil {
		return 0, "", err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	// The certificate was made when the operator started, and no known authority signed it.
	response, err := (&http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{
		InsecureSkipVerify: true}}}).Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return response.StatusCode, string(body), err
}
