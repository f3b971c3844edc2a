// Command testoperator is the operator of the tests of examine. A Greeting becomes a ConfigMap, a Deployment and a
// Service. With SCOPE=Cluster a Greeting has no namespace, and becomes a namespace with a ConfigMap. With
// SECRET=VALUE it also becomes a Secret with that value, which the operator prints. With MORE=yes it has six children: also a
// ServiceAccount, a NetworkPolicy and a PodDisruptionBudget. With LISTEN=ADDRESS the operator
// listens there. With POD_NAME=NAME it ends when the API server does not have its pod. FAULT plants a fault that a test
// must find.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"reflect"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/workqueue"
)

var (
	greetings = schema.GroupVersionResource{Group: "test.example.com", Version: "v1", Resource: "greetings"}
	children  = []schema.GroupVersionResource{
		{Version: "v1", Resource: "configmaps"},
		{Group: "apps", Version: "v1", Resource: "deployments"},
		{Version: "v1", Resource: "services"},
	}
	moreChildren = []schema.GroupVersionResource{
		{Version: "v1", Resource: "serviceaccounts"},
		{Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies"},
		{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"},
	}
	namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	secrets    = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	jobs       = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
	pods       = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	classes    = schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "ingressclasses"}
)

// Faults that FAULT plants.
const (
	hotLoop = "hot-loop" // every reconcile writes the status
	noDrift = "no-drift" // an existing child is never restored
	givesUp = "gives-up" // a refused write ends the reconcile, and is only printed
	atOnce  = "at-once"  // a failed reconcile is repeated at once

	noSecretDrift   = "no-secret-drift"  // an existing Secret is never restored
	blind           = "blind"            // it applies all children in each reconcile, changed or not
	inMemory        = "in-memory"        // the next child is remembered, and not observed
	ignoresDeletion = "ignores-deletion" // the deletion timestamp of a Greeting is ignored
	finalizer       = "finalizer"        // a finalizer on each child that is never removed
	oneName         = "one-name"         // each replica has the same name in the lease
	stubborn        = "stubborn"         // it works on when it has lost its lease
	usualLease      = "usual-lease"      // it has the usual times of a lease, and works on until these times are over
	pollsRarely     = "polls-rarely"     // as polls, at longer intervals
	recreates       = "recreates"        // at its start it replaces the ConfigMap of a Greeting that is not complete
	generation      = "generation"       // it ignores a change of the status of a Greeting
	readopts        = "readopts"         // it sets the owner reference of a child without asking whether the Greeting exists
	noLease         = "no-lease"         // a replica that does not lead also works
	once            = "once"             // not a fault: reports a field that a policy changed; applies it again later
	forgets         = "forgets"          // a failed reconcile is not repeated
	elsewhere       = "elsewhere"        // its lease is in a namespace for which it has no permission
	quits           = "quits"            // it ends as soon as it has created the children
	invalid         = "invalid"          // its Deployment has no image, and nothing reports that it is refused
	failsOn         = "fails-on"         // it makes all children, and each reconcile ends in an error
	failsRarely     = "fails-rarely"     // as fails-on, and no reconcile is repeated
	wrongCA         = "wrong-ca"         // the API server does not trust the certificate of its webhook
	selects         = "selects"          // its cache selects children by a label; it creates those that it does not see
	releases        = "releases"         // it removes its owner reference from a ConfigMap whose labels changed
	leaves          = "leaves"           // children of an earlier spec stay
	marksAll        = "marks-all"        // a new Greeting makes it write to the ConfigMaps of other Greetings
	stuck           = "stuck"            // after a change of the spec its condition Updating stays True
	shares          = "shares"           // the ConfigMap of each Greeting has the same name
	resyncs         = "resyncs"          // it does not watch its children, and resyncs at intervals
	flaps           = "flaps"            // each reconcile removes the report of a refusal, and reports it again
	asksByName      = "asks-by-name"     // it makes all children, and each reconcile asks a Service by its name
	publishes       = "publishes"        // its IngressClass has no namespace in its name, and is never deleted
	replaces        = "replaces"         // it ignores changes of its children, and in the next reconcile replaces their labels
	listsAll        = "lists-all"        // each reconcile lists the ConfigMaps of all namespaces, past the cache
	polls           = "polls"            // it reads its children at intervals, and does not watch them
	pollsSamples    = "polls-samples"    // it lists the Greetings at intervals, and does not watch them
	unwatching      = "unwatching"       // it reads its children in each reconcile, and does not watch them
	ticks           = "ticks"            // all work is done at intervals, and writes what has not changed
	begins          = "begins"           // its status has no condition, and the children follow some seconds later
	hangs           = "hangs"            // a reconcile makes all children, and then does not end
	creates         = "creates"          // each reconcile creates the children, without looking whether they exist
	huge            = "huge"             // its pods fit on no node
	clears          = "clears"           // it deletes a ConfigMap of another owner that has the name of its child
	adopts          = "adopts"           // it applies a child over an object that is not its own
	sweeps          = "sweeps"           // it deletes the children of a Greeting that is being deleted, by their names
	doubles         = "doubles"          // it creates the ConfigMap that its list lacks under the first name that is free
	deaf            = "deaf"             // it watches its children once: after the end of a watch, it only lists them
	sulks           = "sulks"            // it does nothing more once a user has deleted a ConfigMap
	chokes          = "chokes"           // it panics when the text is not ASCII
	faints          = "faints"           // as chokes, in its webhook
	ponders         = "ponders"          // as chokes, after some seconds of work beside the other reconciles
	notes           = "notes"            // it reports an error only by an event with the whole message
	overlooks       = "overlooks"        // it reports no error about a child
	flips           = "flips"            // the status has a list whose order each process changes
	beats           = "beats"            // it writes a time into a ConfigMap all the time
	nags            = "nags"             // it prints an error ten times a second for some seconds
	strips          = "strips"           // it replaces a whole Deployment of which a field has changed
	tires           = "tires"            // it writes the status of a Greeting 12 times, and then never again
	repeats         = "repeats"          // it prints an error at each try, and not only when the error changes
	persists        = "persists"         // it restores the replicas of a Deployment at most once in 2 s, and reports nothing
	seesPods        = "sees-pods"        // of what a policy changed, it reports only a Deployment
	seesCreation    = "sees-creation"    // it reports an error only until the spec of the Greeting changes

	// Habits that are not faults and must not be reported as faults.
	big         = "big"          // its pods need 4 CPUs and 8Gi each, which no usual node has for many of them
	onPort      = "on-port"      // its pods listen on a port of their nodes, so only one fits on a node
	marksPods   = "marks-pods"   // it annotates the pods of its Deployment, and the status has the node of a pod
	makesUp     = "makes-up"     // it generates a password, and accepts a changed one
	fingerprint = "fingerprint"  // the status has a value that lives as long as the process
	protects    = "protects"     // a finalizer of the cluster keeps its ConfigMap
	progressing = "progressing"  // after a change of the spec its status has a condition Updating, which is False
	stumbles    = "stumbles"     // as fails-on at the creation only
	ownCA       = "own-ca"       // it makes the certificate of its webhook
	trails      = "trails"       // some seconds after the creation it writes to the ConfigMap once more
	numbered    = "numbered"     // an annotation of the ConfigMap has the generation
	throttled   = "throttled"    // its client sends 5 requests a second
	crawls      = "crawls"       // its client sends 1 request a second
	complains   = "complains"    // as persists, and the status reports it
	eases       = "eases"        // it restores the replicas of a Deployment three times, and then leaves them
	remakes     = "remakes"      // it deletes a child that the API server does not let it change, and makes it again
	renames     = "renames"      // its ConfigMap gets another name when the first one is taken
	sweepsOwn   = "sweeps-own"   // as sweeps, with the UIDs of the children that it has read
	visits      = "visits"       // it needs seconds to clean up a namespace that is being deleted
	migrates    = "migrates"     // it runs a Job for each Greeting, and is ready before the Job has ended
	proceeds    = "proceeds"     // some seconds after the creation its status has another phase
	notesPart   = "notes-part"   // as notes, with the beginning of the message
	oldLock     = "old-lock"     // it keeps a lock of a leader election in a ConfigMap
	listensLate = "listens-late" // it listens some time after its start
	trusts      = "trusts"       // it creates each child once; AlreadyExists means that it has done so before
	warns       = "warns"        // it refuses a spec whose aside ends with x, and only an event reports it
	runsJob     = "runs-job"     // it runs a Job for a spec whose aside ends with x, and the status remembers it
	remembers   = "remembers"    // as runs-job without a Job, which is a fault
	secretive   = "secretive"    // it makes a Secret for a Greeting with the name more
	fromSecret  = "from-secret"  // it reads the certificate of its webhook from a Secret
	converts    = "converts"     // it converts the versions of a Greeting
	registers   = "registers"    // it makes a certificate, and registers its webhook
	busy        = "busy"         // the first reconcile of each Greeting takes seconds; metrics count errors
	slow        = "slow"         // a reconcile takes most of a second
	waits       = "waits"        // a reconcile that creates children takes some seconds
	named       = "named"        // spec.text is the name of the ConfigMap
	unused      = "unused"       // spec.nodePort never matters; it generates a password
	packs       = "packs"        // spec.nodePort is only in a text that is hashed together with the namespace
	triesAgain  = "tries-again"  // a refused write is tried four times at once in each reconcile
	inAPod      = "in-a-pod"     // it takes the namespace of its lease from the pod in which it runs
	withdraws   = "withdraws"    // its IngressClass has the namespace in its name, and is deleted; all share another one
	calms       = "calms"        // it writes the status of a Greeting at most once in 2 s
	vague       = "vague"        // the status reports an error without its reason
	byHost      = "by-host"      // its name in the lease is that of its machine, which is a pod's name in a cluster
)

// periods are those of the faults that work at intervals.
var periods = map[string]time.Duration{resyncs: 8 * time.Second, ticks: 8 * time.Second, polls: 2 * time.Second, pollsRarely: 8 * time.Second,
	pollsSamples: 2 * time.Second, proceeds: time.Second}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	flag.String("health-probe-bind-address", "0", "not served")
	metrics := flag.String("metrics-bind-address", "0", "of the metrics, which some faults and habits serve")
	flag.Bool("metrics-secure", true, "not supported")
	certs := flag.String("webhook-cert-dir", filepath.Join(os.TempDir(), "k8s-webhook-server", "serving-certs"), "of the certificate of the webhook, which some faults and habits serve")
	port := flag.Int("webhook-port", 9443, "of the webhook")
	elect := flag.Bool("leader-elect", false, "work only as the leader")
	namespace := flag.String("leader-election-namespace", inPodNamespace(), "of the lease")
	kubeconfig := flag.String("kubeconfig", os.Getenv("KUBECONFIG"), "the file with the address of the API server")
	prepare := flag.String("prepare", "", "write this file, and end: what an init container does")
	flag.Parse()
	if *prepare != "" {
		must(os.WriteFile(*prepare, nil, 0o600))
		return
	}
	switch {
	case !*elect || os.Getenv("FAULT") == noLease:
		*namespace = ""
	case os.Getenv("FAULT") == elsewhere:
		*namespace = "default"
	}
	if slices.Contains([]string{busy, hangs, waits}, os.Getenv("FAULT")) {
		go serveMetrics(*metrics)
	}
	must(run(ctx, *kubeconfig, os.Getenv("FAULT"), *namespace, *certs, *port))
}

// must ends the process when there is an error.
func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// listener is open until the process ends.
var listener net.Listener //nolint:unused // a listener that is collected closes its socket

func listen(address string) (err error) {
	listener, err = net.Listen("tcp", address)
	return err
}

// failures is the number of reconciles that ended in an error. begun is when the current reconcile began, 0 between
// reconciles.
var failures, begun atomic.Int64

// serveMetrics serves metrics as controller-runtime does.
func serveMetrics(address string) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		active, longest := 0, 0.0
		if at := begun.Load(); at > 0 {
			active, longest = 1, time.Since(time.Unix(0, at)).Seconds()
		}
		fmt.Fprintf(w, "controller_runtime_reconcile_errors_total{controller=\"greeting\"} %d\n", failures.Load())
		fmt.Fprintf(w, "controller_runtime_active_workers{controller=\"greeting\"} %d\n", active)
		fmt.Fprintf(w, "workqueue_longest_running_processor_seconds{name=\"greeting\"} %g\n", longest)
	})
	server := &http.Server{Addr: address, Handler: handler, ReadHeaderTimeout: time.Second}
	fmt.Fprintln(os.Stderr, "metrics:", server.ListenAndServe())
}

// run works as a leader when there is a namespace for its lease.
func run(ctx context.Context, kubeconfig, fault, leaseNamespace, certs string, port int) error {
	if fault == inAPod && leaseNamespace != "" && inPodNamespace() == "" {
		return errors.New("unable to find leader election namespace: not running in-cluster") // as controller-runtime does
	}
	if address := os.Getenv("LISTEN"); address != "" && fault == listensLate {
		time.AfterFunc(time.Second, func() { must(listen(address)) })
	} else if address != "" {
		must(listen(address))
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	must(err)
	config.QPS = -1 // a client-side rate limit would hide its requests
	switch fault {
	case throttled:
		config.QPS, config.Burst = 5, 10 // as client-go has them
	case crawls:
		config.QPS, config.Burst = 1, 10
	}
	if fault == deaf {
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &onceWatched{RoundTripper: next} })
	}
	client, err := dynamic.NewForConfig(config)
	must(err)
	kube, err := kubernetes.NewForConfig(config)
	must(err)
	if name := os.Getenv("POD_NAME"); name != "" {
		must(findSelf(ctx, kube, name))
	}
	if serve, ok := webhooks[fault]; ok {
		serve(ctx, kube, certs, port)
	}
	if fault == oldLock || fault == beats {
		go beat(ctx, kube, fault == oldLock)
	}
	if leaseNamespace == "" {
		return operate(ctx, client, fault)
	}
	return lead(ctx, kube, leaseNamespace, fault, func(ctx context.Context) error { return operate(ctx, client, fault) })
}

// watchedBy are the resources that the operator watches with a fault.
func watchedBy(fault string) []schema.GroupVersionResource {
	watched := append(slices.Clone(children), greetings)
	switch fault {
	case polls, pollsRarely, unwatching:
		watched = watched[len(children):]
	case pollsSamples:
		watched = watched[:len(children)]
	}
	if os.Getenv("SCOPE") == "Cluster" {
		watched = append(watched, namespaces)
	}
	if fault == migrates {
		watched = append(watched, jobs)
	}
	if os.Getenv("SECRET") != "" {
		watched = append(watched, secrets)
	}
	if os.Getenv("MORE") != "" {
		watched = append(watched, moreChildren...)
	}
	return watched
}

func operate(ctx context.Context, client dynamic.Interface, fault string) error {
	factory := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	selected := dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, 0, "",
		func(o *metav1.ListOptions) { o.LabelSelector = "app=hello" })
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[cache.ObjectName]())
	r := &reconciler{client: client, fault: fault, born: fmt.Sprint(time.Now().UnixNano()),
		begun: map[cache.ObjectName]bool{}, changed: map[string]bool{}, made: map[string]bool{}, restored: map[string]int{}, statuses: map[types.UID]statusWrites{},
		printed: map[cache.ObjectName]string{}, calmed: map[string]time.Time{},
		listers: map[schema.GroupVersionResource]cache.GenericLister{}}
	enqueue := func(object any) {
		for _, name := range greetingsOf(object) {
			queue.Add(name)
		}
	}
	for _, gvr := range watchedBy(fault) {
		handler := cache.ResourceEventHandlerFuncs{AddFunc: enqueue, UpdateFunc: func(_, now any) { enqueue(now) },
			DeleteFunc: enqueue}
		if gvr != greetings && fault == replaces {
			handler.UpdateFunc = func(old, now any) {
				if !reflect.DeepEqual(old.(*unstructured.Unstructured).Object["status"],
					now.(*unstructured.Unstructured).Object["status"]) {
					enqueue(now)
				}
			}
		}
		if gvr == greetings && fault == generation {
			handler.UpdateFunc = func(old, now any) {
				if old.(*unstructured.Unstructured).GetGeneration() != now.(*unstructured.Unstructured).GetGeneration() {
					enqueue(now)
				}
			}
		}
		if gvr == children[0] && fault == sulks {
			handler.DeleteFunc = r.sulk
		}
		if gvr != greetings && (fault == noDrift && gvr.Resource != "deployments" || fault == resyncs) || fault == ticks {
			handler = cache.ResourceEventHandlerFuncs{}
		}
		informer := factory.ForResource(gvr)
		if fault == selects && gvr != greetings {
			informer = selected.ForResource(gvr)
		}
		r.listers[gvr] = informer.Lister()
		_, err := informer.Informer().AddEventHandler(handler)
		must(err)
	}
	if fault == visits {
		_, err := factory.ForResource(namespaces).Informer().AddEventHandler(r.visitor(ctx))
		must(err)
	}
	for _, f := range []dynamicinformer.DynamicSharedInformerFactory{factory, selected} {
		f.Start(ctx.Done())
		f.WaitForCacheSync(ctx.Done())
	}
	if fault == pollsSamples {
		listed := cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil)
		r.listers[greetings] = cache.NewGenericLister(listed, greetings.GroupResource())
		go r.pollGreetings(ctx, listed, enqueue)
	} else if period, ok := periods[fault]; ok {
		go resync(ctx, period, r.listers[greetings], enqueue)
	}
	go func() { <-ctx.Done(); queue.ShutDown() }()
	return r.work(ctx, queue)
}

// work reconciles the objects of a queue until it shuts down.
func (r *reconciler) work(ctx context.Context, queue workqueue.TypedRateLimitingInterface[cache.ObjectName]) error {
	for {
		name, over := queue.Get()
		if over {
			return nil
		}
		if err := holdsLease(); err != nil {
			return err
		}
		begun.Store(time.Now().UnixNano())
		err := r.reconcile(ctx, name)
		begun.Store(0)
		if errors.Is(err, errQuit) {
			return err
		}
		if errors.Is(err, errPostponed) {
			queue.Forget(name)
			queue.AddAfter(name, calm)
		} else if err != nil {
			failures.Add(1)
			r.print(name, err)
			if r.fault == nags {
				go nag(name, err)
			}
			switch r.fault {
			case atOnce:
				queue.Add(name)
			case forgets, failsRarely:
				queue.Forget(name)
			default:
				queue.AddRateLimited(name)
			}
		} else {
			delete(r.printed, name)
			queue.Forget(name)
		}
		queue.Done(name)
	}
}

// resync enqueues every Greeting at intervals, until ctx ends.
func resync(ctx context.Context, period time.Duration, all cache.GenericLister, enqueue func(any)) {
	for tick := time.NewTicker(period); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		objects, _ := all.List(labels.Everything()) // a lister of a cache has no errors
		for _, o := range objects {
			enqueue(o)
		}
	}
}
