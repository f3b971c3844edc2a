package record

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
	"example.com/operator-workshop/04-controller-runtime/internal/testenv"
)

// A fixture is a real API server with MyWebs, and a folder of records. The test calls Reconcile, so each reconcile is
// the first one after a start of the program.
type fixture struct {
	*testing.T
	admin      client.Client
	reconciler *Reconciler
	// writes counts the reconciler's requests that are not reads. crash is set when the program ends before the next one.
	writes int
	crash  bool
}

var errCrash = errors.New("the program was killed before this request")

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

func newFixture(t *testing.T) *fixture {
	ctrl.SetLogger(logr.Discard())
	utilruntime.Must(webv1.AddToScheme(scheme.Scheme))
	root, err := testenv.Root()
	must(t, err)
	cfg := testenv.NewAPIServer(t, filepath.Join(root, "04-controller-runtime", "config", "crd"))
	f := &fixture{T: t, reconciler: &Reconciler{Folder: t.TempDir()}}
	f.admin, err = client.New(cfg, client.Options{})
	must(t, err)
	counted := rest.CopyConfig(cfg)
	counted.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			if request.Method != http.MethodGet {
				if f.crash {
					return nil, errCrash
				}
				f.writes++
			}
			return next.RoundTrip(request)
		})
	})
	f.reconciler.Client, err = client.New(counted, client.Options{})
	must(t, err)
	return f
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// create creates a MyWeb with a node port, as an operator reports it.
func (f *fixture) create(name string, finalizers ...string) *webv1.MyWeb {
	f.Helper()
	web := &webv1.MyWeb{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Finalizers: finalizers},
		Spec: webv1.MyWebSpec{Image: "nginx:1.29"}}
	must(f.T, f.admin.Create(f.Context(), web))
	web.Status.NodePort = 30500
	must(f.T, f.admin.Status().Update(f.Context(), web))
	return web
}

// reconcile calls Reconcile, which must not fail.
func (f *fixture) reconcile(web *webv1.MyWeb, when string) {
	f.Helper()
	if err := f.try(web); err != nil {
		f.Fatalf("%s, the reconcile failed: %v", when, err)
	}
}

func (f *fixture) try(web *webv1.MyWeb) error {
	key := client.ObjectKeyFromObject(web)
	_, err := f.reconciler.Reconcile(f.Context(), ctrl.Request{NamespacedName: key})
	return err
}

// tryAndCrash calls Reconcile in a program that is killed before its next write.
func (f *fixture) tryAndCrash(web *webv1.MyWeb) {
	f.Helper()
	f.crash = true
	defer func() { f.crash = false }()
	if err := f.try(web); err != nil && !strings.Contains(err.Error(), errCrash.Error()) {
		f.Fatalf("the reconcile failed: %v", err)
	}
}

func (f *fixture) delete(web *webv1.MyWeb) {
	f.Helper()
	must(f.T, client.IgnoreNotFound(f.admin.Delete(f.Context(), web)))
}

// finalizers returns the finalizers of a MyWeb; exists is false when it is gone.
func (f *fixture) finalizers(web *webv1.MyWeb) (all []string, exists bool) {
	f.Helper()
	live := &webv1.MyWeb{}
	err := f.admin.Get(f.Context(), client.ObjectKeyFromObject(web), live)
	if !apierrors.IsNotFound(err) {
		must(f.T, err)
	}
	return live.Finalizers, err == nil
}

func (f *fixture) path(web *webv1.MyWeb) string {
	return filepath.Join(f.reconciler.Folder, "default."+web.Name)
}

// record returns the record of a MyWeb; "" when it has none.
func (f *fixture) record(web *webv1.MyWeb) string {
	text, _ := os.ReadFile(f.path(web))
	return strings.TrimSpace(string(text))
}

func TestFinalizer(t *testing.T) {
	f := newFixture(t)
	f.lives(f.create("lives"))
	f.crashesFirst(f.create("crashes-first"))
	f.cannotBeRemoved(f.create("cannot-be-removed"))
	f.crashesLast(f.create("crashes-last"))
	f.isShared(f.create("shared", "example.com/backup"))
	f.isUnknown(f.create("unknown", "example.com/backup"))
}

// lives: a MyWeb is created, and deleted.
func (f *fixture) lives(web *webv1.MyWeb) {
	f.reconcile(web, "A MyWeb was created")
	if got := f.record(web); got != "30500" {
		f.Fatalf("the record must have the node port 30500, and has %q", got)
	}
	f.writes = 0
	if f.reconcile(web, "Nothing changed"); f.writes > 0 {
		f.Fatal("nothing changed, and the reconcile wrote to the API server")
	}
	f.delete(web)
	f.reconcile(web, "A MyWeb was deleted")
	if f.record(web) != "" {
		f.Fatal("a MyWeb was deleted, and its record is still there")
	}
	if _, exists := f.finalizers(web); exists {
		f.Fatal("the record of a deleted MyWeb is removed, and the MyWeb never ends")
	}
	f.reconcile(web, "The MyWeb is gone")
}

// crashesFirst: the program is killed before its first write, and never starts again before the MyWeb is deleted.
func (f *fixture) crashesFirst(web *webv1.MyWeb) {
	f.tryAndCrash(web)
	if f.record(web) != "" {
		f.Fatal("the program was killed before the finalizer was stored, and the record is there: " +
			"when a user deletes the MyWeb now, it stays")
	}
}

// cannotBeRemoved: a folder with a file takes the place of the record, so it cannot be removed for a time.
func (f *fixture) cannotBeRemoved(web *webv1.MyWeb) {
	f.reconcile(web, "A MyWeb was created")
	must(f.T, os.Remove(f.path(web)))
	must(f.T, os.MkdirAll(filepath.Join(f.path(web), "busy"), 0o700))
	f.delete(web)
	err := f.try(web)
	if _, exists := f.finalizers(web); !exists {
		f.Fatal("the record could not be removed, and the MyWeb is gone: no reconcile tries again")
	}
	if err == nil {
		f.Fatal("the record could not be removed, and Reconcile returned no error: no reconcile tries again")
	}
	must(f.T, os.Remove(filepath.Join(f.path(web), "busy")))
	f.reconcile(web, "The record can be removed again")
	if _, exists := f.finalizers(web); exists {
		f.Fatal("the record was removed at the second attempt, and the MyWeb never ends")
	}
}

// crashesLast: the program is killed after it removed the record, and before it removes the finalizer.
func (f *fixture) crashesLast(web *webv1.MyWeb) {
	f.reconcile(web, "A MyWeb was created")
	f.delete(web)
	f.tryAndCrash(web)
	if f.record(web) != "" {
		f.Fatal("the program was killed before it removed the finalizer, and the record is still there: " +
			"the finalizer must be removed last")
	}
	f.reconcile(web, "The record was removed, the program was killed and started again")
	if _, exists := f.finalizers(web); exists {
		f.Fatal("the program was killed after it removed the record, and the MyWeb never ends")
	}
}

// isShared: another controller has a finalizer, too, and needs longer.
func (f *fixture) isShared(web *webv1.MyWeb) {
	f.reconcile(web, "A MyWeb was created")
	f.delete(web)
	f.reconcile(web, "A MyWeb was deleted")
	if all, _ := f.finalizers(web); !slices.Equal(all, []string{"example.com/backup"}) {
		f.Fatalf("the finalizer example.com/backup of another controller must stay alone, and the MyWeb has %q", all)
	}
	// The administrator gives the name to another website before the other controller is ready.
	must(f.T, os.WriteFile(f.path(web), []byte("30999\n"), 0o600))
	f.reconcile(web, "Another controller cleans up")
	if f.record(web) != "30999" {
		f.Fatal("the record was removed a second time: the name belonged to another website by then")
	}
}

// isUnknown: a MyWeb is deleted before the program sees it for the first time.
func (f *fixture) isUnknown(web *webv1.MyWeb) {
	f.delete(web)
	f.reconcile(web, "A MyWeb was deleted before its first reconcile")
	if f.record(web) != "" {
		f.Fatal("a record was written for a MyWeb that is being deleted")
	}
}
