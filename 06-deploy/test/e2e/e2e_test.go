//go:build kind

// Package e2e takes the MyWeb operator through its life in a real cluster: image, deployment, handover, upgrade,
// rollback, new certificates, removal, and the same in the wrong order. kind.sh gives it a kind cluster.
package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	operator  = "myweb-operator"
	oldImage  = "myweb-operator:v1"
	newImage  = "myweb-operator:v2"
	handImage = "myweb-operator:03"
	// production is how the test runs the operator: two replicas, webhooks, metrics.
	production = "CONFIG=kind-production"
	// monitoringKinds are the kinds of the Prometheus operator, by name only.
	monitoringKinds = "internal/manifests/testdata/others.yaml"
)

// TestEndToEnd is one story: each step begins with the state that the step before left, and the first step that fails
// ends the test.
func TestEndToEnd(t *testing.T) {
	if os.Getenv("KUBECONFIG") == "" || os.Getenv("KIND_CLUSTER") == "" {
		t.Fatal("KUBECONFIG and KIND_CLUSTER do not name a kind cluster: run ./kind.sh")
	}
	w := &suite{T: t}
	t.Cleanup(w.remove)
	for _, step := range []struct {
		name string
		do   func(*suite)
	}{
		{"the image, without Docker, twice the same", (*suite).images},
		{"what cannot be deployed says why", (*suite).refused},
		{"the operator runs, restricted, and serves a page", (*suite).deployed},
		{"metrics over TLS, for those who may read them", (*suite).metrics},
		{"a leader that stops, and one that is killed", (*suite).handover},
		{"an upgrade while MyWebs change", (*suite).upgrade},
		{"a rollback while MyWebs change", (*suite).rollback},
		{"new certificates while MyWebs are made", (*suite).certificates},
		{"no permission missing, none unused", (*suite).permissions},
		{"removed and back: websites do not notice", (*suite).away},
		{"one namespace, and no right outside of it", (*suite).oneNamespace},
		{"the wrong order, and how to fix it", (*suite).wrongOrder},
		{"the operator by hand", (*suite).byHand},
		{"nothing is left", (*suite).nothingLeft},
	} {
		began := time.Now()
		if !t.Run(step.name, func(t *testing.T) { step.do(&suite{T: t}) }) {
			w.explain()
			return
		}
		t.Logf("== %s: %.0f s", step.name, time.Since(began).Seconds())
	}
}

// A suite has the commands that steps are made of. A command that fails ends the step.
type suite struct{ *testing.T }

// try runs a program in the chapter's folder and returns what it printed.
func try(name string, args ...string) (string, error) { return feed("", name, args...) }

// feed is try for a program that reads a text.
func feed(text, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Stdin = "../..", strings.NewReader(text)
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out)), err
}

func (w *suite) run(name string, args ...string) string {
	w.Helper()
	out, err := try(name, args...)
	w.must(err)
	return out
}

func (w *suite) kubectl(args ...string) string {
	w.Helper()
	return w.run("kubectl", args...)
}

func (w *suite) apply(manifest string) {
	w.Helper()
	_, err := feed(manifest, "kubectl", "apply", "-f", "-")
	w.must(err)
}

func (w *suite) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// fails runs a program that must fail, and say so.
func (w *suite) fails(says, name string, args ...string) {
	w.Helper()
	out, err := try(name, args...)
	if err == nil || !strings.Contains(out, says) {
		w.Fatalf("%s %s: it should fail and say %q: %v\n%s", name, strings.Join(args, " "), says, err, out)
	}
	for line := range strings.Lines(out) {
		if strings.Contains(line, says) {
			w.Log(strings.TrimSpace(line))
		}
	}
}

// eventually waits until a check has no error.
func (w *suite) eventually(limit time.Duration, check func() error) {
	w.Helper()
	deadline := time.Now().Add(limit)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			w.Fatalf("not true after %s: %v", limit, err)
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// says returns a check that a command succeeds and prints a text.
func says(want, name string, args ...string) func() error {
	return func() error {
		out, err := try(name, args...)
		if err == nil && !strings.Contains(out, want) {
			err = fmt.Errorf("%s %s prints %q, want %q", name, strings.Join(args, " "), out, want)
		}
		return err
	}
}

// explain prints the state that a person needs to find the cause.
func (w *suite) explain() {
	for _, args := range [][]string{{"-n", operator, "get", "pods", "-o", "wide"},
		{"-n", operator, "logs", "-l", "app.kubernetes.io/name=" + operator, "--prefix", "--tail=30"},
		{"-n", operator, "get", "events"}, {"get", "mywebs,deployments,pods"}} {
		out, _ := try("kubectl", args...)
		w.Logf("kubectl %s\n%s", strings.Join(args, " "), out)
	}
}

// remove leaves the cluster as it was found, also after an error.
func (w *suite) remove() {
	_, err := try("make", "undeploy", production)
	_, err2 := try("make", "uninstall", "FORCE=1")
	_, err3 := try("kubectl", "delete", "--ignore-not-found", "-f", monitoringKinds)
	if err = errors.Join(err, err2, err3); err != nil {
		w.Error(err)
	}
}

var digest = regexp.MustCompile(`sha256:[0-9a-f]{64}`)

func (w *suite) images() {
	first := w.run("make", "-s", "image", "IMPL=04", "VERSION=v1.0.0", "IMG="+oldImage)
	second := w.run("make", "-s", "image", "IMPL=04", "VERSION=v1.0.0", "IMG="+oldImage)
	if a, b := digest.FindString(first), digest.FindString(second); a == "" || a != b {
		w.Fatalf("built twice: %q and %q", a, b)
	}
	w.Log(second)
	w.run("make", "-s", "load")
	for image, args := range map[string][]string{
		newImage: {"IMPL=04", "VERSION=v2.0.0"}, handImage: {"IMPL=03", "VERSION=v1.0.0"}} {
		w.Log(w.run("make", append([]string{"-s", "image", "IMG=" + image}, args...)...))
		w.run("make", "-s", "load")
	}
}

func (w *suite) refused() {
	w.fails("make install", "make", "-s", "deploy", production, "IMG="+oldImage)
	w.run("make", "-s", "install")
	w.fails("the cluster has no ServiceMonitor", "make", "-s", "deploy", production, "IMG="+oldImage)
	w.kubectl("apply", "-f", monitoringKinds) // the kinds alone: no Prometheus runs here
	w.eventually(30*time.Second, says("", "kubectl", "wait", "--for=condition=Established", "-f", monitoringKinds))
	w.fails("ErrImageNeverPull", "make", "-s", "deploy", production, "IMG=myweb-operator:forgotten")
	w.run("make", "-s", "undeploy", production)
}

// busy MyWebs are changed while the operator changes; idle MyWebs must stay untouched.
var busy, idle = []string{"busy-a", "busy-b", "busy-c"}, []string{"idle-a", "idle-b"}

func (w *suite) deployed() {
	if log, err := audited(); err == nil {
		auditBegan = len(log)
	}
	w.run("make", "-s", "deploy", production, "IMG="+oldImage)
	if level := w.kubectl("get", "namespace", operator, "-o",
		`jsonpath={.metadata.labels.pod-security\.kubernetes\.io/enforce}`); level != "restricted" {
		w.Errorf("the namespace enforces %q", level)
	}
	w.kubectl("apply", "-k", "config/samples", "--dry-run=server")
	// Without a tag the kubelet always pulls, and the cluster may have no registry.
	w.apply(strings.Replace(w.kubectl("kustomize", "config/samples"), "image: nginx\n", "image: nginx:1.29-alpine\n", 1))
	w.kubectl("wait", "web/myweb", "--for=jsonpath={.status.completed}=true", "--timeout=120s")
	w.eventually(30*time.Second,
		says("Hello, World!", "docker", "exec", node(), "curl", "-fsS", "--max-time", "5", w.site()))
	w.eventually(20*time.Second,
		says("Normal", "kubectl", "get", "events", "--field-selector", "involvedObject.kind=MyWeb,involvedObject.name=myweb"))
	w.create(append(busy, idle...)...)
	w.Log(w.kubectl("get", "web"))
}

// site is where the sample serves its page: a port of the node.
func (w *suite) site() string {
	w.Helper()
	return "http://" + w.kubectl("get", "node", node(), "-o",
		`jsonpath={.status.addresses[?(@.type=="InternalIP")].address}`) + ":30100/"
}

func node() string { return os.Getenv("KIND_CLUSTER") + "-control-plane" }

// handover measures how long a change waits at most while the leader stops, and while it is killed.
func (w *suite) handover() {
	for _, way := range []struct {
		name  string
		limit time.Duration
		end   func(pod string)
	}{
		// It releases the lease: long before the 15 s are over in which a lease expires.
		{"stops", 10 * time.Second, func(pod string) { w.kubectl("-n", operator, "delete", "pod", pod, "--wait=false") }},
		// The others see the last renewal up to 2.2 s late, wait for 15 s, and ask again within 2.2 s.
		{"is killed", 25 * time.Second, w.kill},
	} {
		w.ready()
		v, old := w.visit("busy-a"), w.leader()
		pod, _, _ := strings.Cut(old, "_")
		way.end(pod)
		w.eventually(30*time.Second, func() error {
			if now := w.leader(); now == old || now == "" {
				return fmt.Errorf("the lease is held by %q, as before", now)
			}
			return nil
		})
		time.Sleep(time.Second) // of work under the new leader
		count, longest, err := v.end()
		w.must(err)
		w.Logf("the leader %s: of %d changes none was lost, one waited for %.1f s, longer than all others", way.name, count,
			longest.Seconds())
		if longest > way.limit {
			w.Errorf("a leader that %s: a change waited for %s, and may wait for %s", way.name, longest, way.limit)
		}
	}
	w.ready()
	w.kubectl("rollout", "status", "deployment/busy-a", "--timeout=90s")
}

// kill ends the process in a pod with SIGKILL.
func (w *suite) kill(pod string) {
	w.Helper()
	container := w.run("docker", "exec", node(), "crictl", "ps", "-q", "--label", "io.kubernetes.pod.name="+pod)
	pid := w.run("docker", "exec", node(), "crictl", "inspect", "-o", "go-template", "--template",
		"{{.info.pid}}", container)
	w.run("docker", "exec", node(), "kill", "-KILL", pid)
}

func (w *suite) upgrade() {
	w.rollTo("the upgrade", newImage, func() { w.run("make", "-s", "deploy", production, "IMG="+newImage) })
}

func (w *suite) rollback() {
	w.rollTo("the rollback", oldImage, func() { w.kubectl("-n", operator, "rollout", "undo", "deployment/"+operator) })
}

// rollTo rolls the operator to another image while MyWebs change. Every change must arrive, the operator
// must not touch MyWebs that were not changed, and no Deployment changes more often than its MyWeb.
func (w *suite) rollTo(what, image string, roll func()) {
	w.Helper()
	all := append(append([]string{}, busy...), idle...)
	pods, generations := w.children(all...)
	r := w.keepChanging(busy...)
	roll()
	w.ready()
	w.eventually(60*time.Second, func() error { return onlyRuns(image) }) // old pods take seconds to end
	time.Sleep(3 * time.Second)                                           // of changes under the new operator alone
	changes := r.settled(w)
	podsNow, generationsNow := w.children(all...)
	rolled := 0
	for _, name := range all {
		delta := int(generationsNow[name] - generations[name])
		rolled += delta
		if delta > r.asked[name] {
			w.Errorf("%s: its Deployment changed %d times for %d changes", name, delta, r.asked[name])
		}
		if r.asked[name] == 0 && podsNow[name] != pods[name] {
			w.Errorf("%s: its pods were replaced for nothing: %s, then %s", name, pods[name], podsNow[name])
		}
	}
	w.Logf("%s: %d changes, 0 lost, 0 refused; %d rollouts of websites for them, 0 for nothing", what, changes, rolled)
}

// onlyRuns checks that all pods of the operator, also those that are ending, run an image.
func onlyRuns(image string) error {
	out, err := try("kubectl", "-n", operator, "get", "pods", "-l", "app.kubernetes.io/name="+operator, "-o",
		`jsonpath={range .items[*]}{.metadata.name} {.spec.containers[0].image}{"\n"}{end}`)
	for line := range strings.Lines(out) {
		if pod, runs, _ := strings.Cut(strings.TrimSpace(line), " "); err == nil && runs != image {
			err = fmt.Errorf("pod %s runs %s, want %s", pod, runs, image)
		}
	}
	return err
}

// certificates lets the operator make a new certificate, three times, while MyWebs are made that must be answered.
func (w *suite) certificates() {
	ctx, stop := context.WithCancel(w.Context())
	ended, asked := make(chan error, 1), 0
	go func() {
		for ctx.Err() == nil {
			web, err := dryRun(context.WithoutCancel(ctx), "asked")
			if page, _, _ := unstructured.NestedString(web.Object, "spec", "pageContentHtml"); err == nil && page == "" {
				err = errors.New("a MyWeb without a page got none: the webhook was not asked")
			}
			if err != nil {
				ended <- err
				return
			}
			asked++
			time.Sleep(20 * time.Millisecond)
		}
		ended <- nil
	}()
	serving := func() string {
		return w.kubectl("-n", operator, "get", "secret", operator+"-webhook", "-o", `jsonpath={.data.tls\.crt}`)
	}
	for range 3 {
		old := serving()
		w.kubectl("-n", operator, "patch", "secret", operator+"-webhook", "--type=merge", "-p",
			`{"data":{"tls.crt":null,"tls.key":null}}`)
		w.eventually(60*time.Second, func() error {
			if now := serving(); now == "" || now == old {
				return errors.New("the certificate is not a new one yet")
			}
			return nil
		})
		time.Sleep(2 * time.Second) // of requests with the new certificate
	}
	stop()
	w.must(<-ended)
	w.Logf("3 new certificates, %d requests meanwhile, 0 without an answer", asked)
}

// metrics requests the metrics over TLS: without a token, with the token of a user who may not read them, and with the
// token of a user who may.
func (w *suite) metrics() {
	w.Cleanup(func() {
		w.run("kubectl", "delete", "serviceaccount", "e2e-reader", "e2e-nobody", "--ignore-not-found")
		w.run("kubectl", "delete", "clusterrolebinding", "e2e-metrics", "--ignore-not-found")
	})
	w.kubectl("create", "serviceaccount", "e2e-reader")
	w.kubectl("create", "serviceaccount", "e2e-nobody")
	w.kubectl("create", "clusterrolebinding", "e2e-metrics", "--clusterrole="+operator+"-metrics-reader",
		"--serviceaccount=default:e2e-reader")
	for account, want := range map[string]int{"": 401, "e2e-nobody": 403, "e2e-reader": 200} {
		token := ""
		if account != "" {
			token = w.kubectl("create", "token", account)
		}
		w.eventually(60*time.Second, func() error { // a refusal is remembered for half a minute
			code, text, err := scrape(w.Context(), token)
			if err == nil && code != want {
				err = fmt.Errorf("metrics for %q: %d, want %d", account, code, want)
			}
			if err == nil && want == 200 && !strings.Contains(text, "leader_election_master_status") {
				err = errors.New("the metrics lack leader_election_master_status")
			}
			return err
		})
	}
	w.Log("metrics: 401 without a token, 403 for an account without the role, 200 with it")
}

// permissions compares the roles with the requests of the operator since its start. Informers that stream the initial
// objects need no list; one start without streams shows that list is needed there.
func (w *suite) permissions() {
	if _, err := audited(); err != nil {
		w.Skip("this cluster has no audit log: make kind-down, and the next one has")
	}
	w.minimal(production, auditBegan)
}

// minimal starts the operator anew without streams, and waits until it has used all permissions in the roles of a way
// to deploy. begin is the length of the audit log when the operator was deployed.
func (w *suite) minimal(way string, begin int) {
	w.Helper()
	w.kubectl("-n", operator, "set", "env", "deployment/"+operator, "KUBE_FEATURE_WatchListClient=false")
	w.ready()
	file := w.TempDir() + "/audit.log"
	w.eventually(60*time.Second, func() error { // until the new leader has begun
		log, err := audited()
		if err == nil && len(log) < begin {
			err = errors.New("the audit log was rotated: make kind-down, and the next cluster has a new one")
		}
		if err == nil {
			err = os.WriteFile(file, []byte(strings.TrimPrefix(log[begin:], "\n")), 0o600)
		}
		if err != nil {
			return err
		}
		out, err := try("make", "-s", "permissions", way, "LOG="+file)
		if err == nil {
			w.Log(way + ": " + out)
		}
		return err
	})
}

// auditBegan is the length of the audit log when the operator was deployed.
var auditBegan int

// audited is the API server's audit log.
func audited() (string, error) {
	return try("docker", "exec", node(), "cat", "/var/log/kubernetes/audit.log")
}

// away removes the operator and deploys it again: it continues with the existing objects, and changes none of them.
func (w *suite) away() {
	all := append(append([]string{}, busy...), idle...)
	pods, generations := w.children(all...)
	w.run("make", "-s", "undeploy", production)
	w.must(write(w.Context(), "idle-a", "<p>while nobody was there</p>"))
	w.must(write(w.Context(), "idle-a", "<p>idle-a</p>"))
	w.must(says("Hello, World!", "docker", "exec", node(), "curl", "-fsS", "--max-time", "5", w.site())())
	w.run("make", "-s", "deploy", production, "IMG="+newImage)
	w.must(write(w.Context(), "busy-a", "<p>back</p>"))
	w.eventually(30*time.Second, func() error {
		got, err := page(w.Context(), "busy-a")
		if err == nil && got != "<p>back</p>" {
			err = fmt.Errorf("busy-a serves %q", got)
		}
		return err
	})
	w.kubectl("rollout", "status", "deployment/busy-a", "--timeout=90s")
	podsNow, generationsNow := w.children(all...)
	for _, name := range all {
		if name != "busy-a" && (podsNow[name] != pods[name] || generationsNow[name] != generations[name]) {
			w.Errorf("%s was touched: %s, generation %d; then %s, %d", name, pods[name], generations[name], podsNow[name],
				generationsNow[name])
		}
	}
	w.Logf("%d websites served while the operator was away, and none was touched when it came back", len(all)+1)
}

// oneNamespace runs the operator for the namespace websites alone.
func (w *suite) oneNamespace() {
	w.run("make", "-s", "undeploy", production)
	w.Cleanup(func() {
		w.run("make", "-s", "undeploy", "CONFIG=namespaced")
		w.run("kubectl", "delete", "namespace", "websites", "--ignore-not-found")
		w.run("make", "-s", "deploy", production, "IMG="+newImage)
	})
	begin := 0
	log, err := audited()
	if err == nil {
		begin = len(log)
	}
	w.kubectl("create", "namespace", "websites")
	w.run("make", "-s", "deploy", "CONFIG=namespaced", "IMG="+newImage)
	before, err := page(w.Context(), "idle-a")
	w.must(err)
	w.must(write(w.Context(), "idle-a", "<p>nobody looks</p>"))
	w.apply(`{apiVersion: operator.k8s-summit.org/v1, kind: MyWeb, metadata: {name: inside, namespace: websites},
		spec: {image: "nginx:1.29-alpine"}}`)
	w.kubectl("-n", "websites", "wait", "web/inside", "--for=jsonpath={.status.completed}=true", "--timeout=120s")
	if now, err := page(w.Context(), "idle-a"); err != nil || now != before {
		w.Errorf("a MyWeb outside was served: %v, %q", err, now)
	}
	w.must(write(w.Context(), "idle-a", before))
	if begin > 0 {
		w.minimal("CONFIG=namespaced", begin)
	}
}

// wrongOrder deletes objects in the wrong order, checks the symptoms, and fixes them.
func (w *suite) wrongOrder() {
	w.fails("MyWeb", "make", "-s", "uninstall") // with MyWebs there
	w.kubectl("delete", "namespace", operator)
	_, err := dryRun(w.Context(), "orphan")
	if err == nil || !strings.Contains(err.Error(), "failed calling webhook") {
		w.Fatalf("the namespace is gone and the webhook configuration is not: %v", err)
	}
	w.Logf("the namespace deleted first: %v", err)
	w.run("make", "-s", "undeploy", production)
	w.eventually(10*time.Second, func() error { // the API server hears of the deletion a little later
		_, err := dryRun(w.Context(), "orphan")
		return err
	})
	w.Log("make undeploy fixes it: MyWebs can be written again")
	w.run("make", "-s", "deploy", production, "IMG="+newImage)
	w.run("make", "-s", "uninstall", "FORCE=1")
	w.gone()
	w.Log("the CRD deleted while the operator runs: all MyWebs went, and the garbage collector took their websites")
	w.run("make", "-s", "install")
	w.create("after")
	w.Log("the CRD made again: the same operator serves MyWebs again")
	w.kubectl("delete", "web", "--all", "--wait")
	w.gone()
	w.run("make", "-s", "undeploy", production)
}

// gone waits until no website is left.
func (w *suite) gone() {
	w.Helper()
	w.eventually(120*time.Second, func() error {
		out, err := try("kubectl", "get", "deployments,services,configmaps,pods", "-l",
			"app.kubernetes.io/managed-by="+operator, "-o", "name")
		if err == nil && out != "" {
			err = fmt.Errorf("left: %s", out)
		}
		return err
	})
}

// byHand runs the operator of chapter 03 the same way.
func (w *suite) byHand() {
	hand := []string{"IMPL=03", "CONFIG=kind"}
	w.Cleanup(func() { w.run("make", append([]string{"-s", "undeploy"}, hand...)...) })
	w.run("make", append([]string{"-s", "deploy", "IMG=" + handImage}, hand...)...)
	w.create("by-hand")
	took, err := once(w.Context(), "by-hand", "<p>changed</p>")
	w.must(err)
	w.Logf("the operator of chapter 03 serves a MyWeb; a change took %d ms", took.Milliseconds())
	w.kubectl("delete", "web", "--all", "--wait")
	w.gone() // the garbage collector cannot look up an owner whose CRD is gone
}

func (w *suite) nothingLeft() {
	w.run("make", "-s", "undeploy", production)
	w.run("make", "-s", "uninstall")
	left := w.kubectl("get", "namespaces,crds,clusterroles,clusterrolebindings,"+
		"validatingwebhookconfigurations,mutatingwebhookconfigurations,priorityclasses", "-o", "name")
	for line := range strings.Lines(left) {
		if strings.Contains(line, operator) || strings.Contains(line, "mywebs") {
			w.Errorf("left: %s", line)
		}
	}
}
