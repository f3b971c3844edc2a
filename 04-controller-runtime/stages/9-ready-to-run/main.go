// Stage 9, ready to run: several replicas, of which one works, probes, metrics, an orderly shutdown.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
	"example.com/operator-workshop/04-controller-runtime/internal/fields"
	"example.com/operator-workshop/04-controller-runtime/internal/myweb"
	"example.com/operator-workshop/04-controller-runtime/internal/owned"
)

// Reconciler is called for each MyWeb that was created, changed or deleted, or whose child was; and for all of them
// at the start.
type Reconciler struct {
	client.Client
	Events events.EventRecorder
}

// Reconcile brings the children of a MyWeb to the state that its spec asks for, and reports their state. It does not
// ask what happened: it reads the live state.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	// The manager waits for work in progress, then releases the lease. The server may still execute a cancelled request.
	ctx = context.WithoutCancel(ctx)
	web := &webv1.MyWeb{}
	if err := r.Get(ctx, req.NamespacedName, web); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err) // deleted: there is nothing to do
	}
	if !web.DeletionTimestamp.IsZero() { // being deleted: the garbage collector removes the children
		return ctrl.Result{}, nil
	}
	children := myweb.DesiredChildren(web)
	blocked, err := r.observe(ctx, web, children)
	if err != nil {
		return ctrl.Result{}, err // logged, and tried again with backoff
	}
	for _, child := range children {
		if blocked != nil {
			break
		}
		if err := r.applyChild(ctx, child); err != nil {
			return ctrl.Result{}, fmt.Errorf("apply %s %s: %w", child.Kind, req, err)
		}
	}
	deployment, service := myweb.LiveOf(children)
	return ctrl.Result{}, r.updateStatus(ctx, web, deployment, service, blocked)
}

// observe reads the live children. It returns the conflicts of the MyWeb with objects that it does not own.
func (r *Reconciler) observe(ctx context.Context, web *webv1.MyWeb, children []*owned.Child) (*owned.ConditionError,
	error) {
	var conflicts []error
	for _, child := range children {
		live := child.Live.DeepCopyObject().(client.Object)
		if err := r.Get(ctx, client.ObjectKeyFromObject(web), live); client.IgnoreNotFound(err) != nil {
			return nil, err
		}
		if conflict := myweb.Kind.Conflict(web, child.Kind, live); conflict != nil {
			conflicts = append(conflicts, conflict)
		} else {
			child.Live = live
		}
	}
	return owned.AsCondition(owned.Join(conflicts...)), nil
}

// applyChild applies a child unless it is up to date. Afterwards child.Live is the object in the cluster.
func (r *Reconciler) applyChild(ctx context.Context, child *owned.Child) error {
	// Every desired field must be there; other fields do not matter. An empty text, list or map counts as not desired:
	// an annotation that holds a hash of all fields makes up for that.
	if equality.Semantic.DeepDerivative(fields.Of(child.Desired), fields.Of(child.Live)) {
		return nil
	}
	err := r.Apply(ctx, child.Desired, client.FieldOwner(myweb.FieldOwner), client.ForceOwnership)
	if err != nil {
		return err
	}
	log.FromContext(ctx).Info("Applied child", "kind", child.Kind)
	return runtime.DefaultUnstructuredConverter.FromUnstructured(fields.Of(child.Desired), child.Live) // the answer
}

// updateStatus reports the state of the children, when it differs from the reported state. /status is a subresource:
// this update cannot change the spec, and it leaves the generation as it is.
func (r *Reconciler) updateStatus(ctx context.Context, web *webv1.MyWeb, deployment *appsv1.Deployment,
	service *corev1.Service, blocked *owned.ConditionError) error {
	old := web.Status
	web.Status = myweb.StatusFor(web, deployment, service, blocked, time.Now())
	// The Deployment controller has not looked at the newest template yet: its status is about to change, and the
	// change will enqueue the MyWeb. Until then the report about this generation of the MyWeb stays.
	unobserved := blocked == nil && deployment.Status.ObservedGeneration < deployment.Generation
	if equality.Semantic.DeepEqual(old, web.Status) || unobserved && old.ObservedGeneration == web.Generation {
		return nil
	}
	if err := r.Status().Update(ctx, web); err != nil {
		return fmt.Errorf("update status of MyWeb %s: %w", client.ObjectKeyFromObject(web), err)
	}
	for _, e := range owned.Events(old.Conditions, web.Status.Conditions) { // transitions only, after the status is written
		r.Events.Eventf(web, nil, e.Type, e.Reason, "Serve", "%s", e.Note)
	}
	return nil
}

// mapToMyWeb returns the MyWeb with the name of an object. Owns enqueues only owners.
func mapToMyWeb(_ context.Context, obj client.Object) []ctrl.Request {
	return []ctrl.Request{{NamespacedName: client.ObjectKeyFromObject(obj)}}
}

func main() {
	var o ctrl.Options
	flag.BoolVar(&o.LeaderElection, "leader-elect", false, "work only while holding a lease, for several replicas")
	flag.StringVar(&o.LeaderElectionNamespace, "leader-election-namespace", "",
		"namespace of the lease (default: the pod's own)")
	flag.StringVar(&o.HealthProbeBindAddress, "health-probe-bind-address", "127.0.0.1:8081",
		"host:port for /healthz and /readyz; 0 = off")
	flag.StringVar(&o.Metrics.BindAddress, "metrics-bind-address", "0", "host:port for metrics; 0 = off")
	flag.IntVar(&o.Controller.MaxConcurrentReconciles, "max-concurrent-reconciles", 4,
		"how many MyWebs are reconciled at once")
	flag.Parse() // --kubeconfig is controller-runtime's own
	ctrl.SetLogger(zap.New(zap.UseDevMode(true)))
	if err := run(ctrl.SetupSignalHandler(), o); err != nil {
		fmt.Fprintln(os.Stderr, "myweb-operator:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o ctrl.Options) error {
	cfg, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	o.Scheme = runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(o.Scheme)) // ConfigMaps, Deployments, Services
	utilruntime.Must(webv1.AddToScheme(o.Scheme))
	// A reconcile reads the writes of the reconcile before it, even when the watch is a moment behind.
	o.Client.Cache = &client.CacheOptions{EnableReadYourWritesConsistency: new(true)}
	o.LeaderElectionID = myweb.FieldOwner
	o.LeaderElectionReleaseOnCancel = true           // the next leader need not wait until the lease runs out
	o.GracefulShutdownTimeout = new(8 * time.Second) // less than terminationGracePeriodSeconds of the pod
	mgr, err := ctrl.NewManager(cfg, o)
	if err != nil {
		return err
	}
	sameName := handler.EnqueueRequestsFromMapFunc(mapToMyWeb)
	err = ctrl.NewControllerManagedBy(mgr).
		// A status has no generation: writing it does not enqueue the MyWeb.
		For(&webv1.MyWeb{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&corev1.ConfigMap{}).
		Owns(&appsv1.Deployment{}).
		Owns(&corev1.Service{}).
		Watches(&corev1.ConfigMap{}, sameName).
		Watches(&appsv1.Deployment{}, sameName).
		Watches(&corev1.Service{}, sameName).
		Complete(&Reconciler{Client: mgr.GetClient(), Events: mgr.GetEventRecorder(myweb.FieldOwner)})
	if err != nil {
		return err
	}
	synced := func(r *http.Request) error {
		ctx, cancel := context.WithTimeout(r.Context(), 100*time.Millisecond)
		defer cancel()
		if !mgr.GetCache().WaitForCacheSync(ctx) {
			return errors.New("the caches have not synced yet")
		}
		return nil
	}
	if err := errors.Join(mgr.AddHealthzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("caches", synced)); err != nil {
		return err
	}
	return mgr.Start(ctx)
}
