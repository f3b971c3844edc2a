// Package exercises_test proves what hints of this chapter's exercises state about the API server, where neither a wrong
// answer nor a recorded failure shows it.
package exercises_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
	"example.com/operator-workshop/04-controller-runtime/internal/testenv"
	"example.com/operator-workshop/04-controller-runtime/stages/objects"
)

// statements has the words of a hint, and a test of them.
var statements = map[string]func(*testing.T, client.WithWatch){
	"For an equal status the API server stores nothing and sends no event": equalStatus,
	"its clusterIP is immutable":                                                                 immutableIP,
	"(GenerationChangedPredicate) ignores writes of a status":                                    generationOfStatus,
	"The API server refuses a new finalizer on an object that is being deleted":                  lateFinalizer,
	"While an object has finalizers, the API server answers a deletion with a deletionTimestamp": lateFinalizer,
	"The generation of the MyWeb changes when its spec changes":                                  generationOfStatus,
	"With GenerateName the API server gives each object another name":                            generatedName,
	"what only the other apply has is removed":                                                   secondApply,
	"this list replaces the one in the cluster, with the containers of others":                   patchOfList,
	"An own write that changes an object is an event":                                            equalStatus,
}

func TestStatementsOfHints(t *testing.T) {
	root, err := testenv.Root()
	if errors.Is(err, testenv.ErrNoRepository) {
		t.Skip(err)
	}
	testenv.Must(t, err)
	hints := ""
	for _, path := range []string{"04-controller-runtime/exercises.yaml", "scripts/internal/exercise/mistakes.yaml",
		"scripts/internal/exercise/capstone/hints.yaml"} {
		text, err := os.ReadFile(filepath.Join(root, path))
		testenv.Must(t, err)
		hints += strings.Join(strings.Fields(string(text)), " ")
	}
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(webv1.AddToScheme(scheme))
	c, err := client.NewWithWatch(testenv.NewAPIServer(t, "../config/crd"), client.Options{Scheme: scheme})
	testenv.Must(t, err)
	for statement, prove := range statements {
		t.Run(statement, func(t *testing.T) {
			if !strings.Contains(hints, statement) {
				t.Error("no hint states it")
			}
			prove(t, c)
		})
	}
}

// newWeb creates a MyWeb with a status.
func newWeb(t *testing.T, c client.Client) *webv1.MyWeb {
	t.Helper()
	web := &webv1.MyWeb{ObjectMeta: metav1.ObjectMeta{GenerateName: "web-", Namespace: "default"},
		Spec: webv1.MyWebSpec{Image: "nginx"}}
	testenv.Must(t, c.Create(t.Context(), web))
	web.Status.ReadyReplicas = 1
	testenv.Must(t, c.Status().Update(t.Context(), web))
	return web
}

// equalStatus writes an equal status, and then another one: the first event is that of the other one.
func equalStatus(t *testing.T, c client.WithWatch) {
	web := newWeb(t, c)
	version := web.ResourceVersion
	w, err := c.Watch(t.Context(), &webv1.MyWebList{}, client.InNamespace(web.Namespace),
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: version}})
	testenv.Must(t, err)
	defer w.Stop()
	testenv.Must(t, c.Status().Update(t.Context(), web))
	if web.ResourceVersion != version {
		t.Errorf("the equal status was stored: version %s, before %s", web.ResourceVersion, version)
	}
	web.Status.ReadyReplicas = 2
	testenv.Must(t, c.Status().Update(t.Context(), web))
	event := <-w.ResultChan()
	if got, ok := event.Object.(*webv1.MyWeb); !ok || got.Status.ReadyReplicas != 2 {
		t.Errorf("the first event is %s %+v", event.Type, event.Object)
	}
}

func immutableIP(t *testing.T, c client.WithWatch) {
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"},
		Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	testenv.Must(t, c.Create(t.Context(), service))
	ip := service.Spec.ClusterIP
	service.Spec.ClusterIP, service.Spec.ClusterIPs = "None", []string{"None"}
	if err := c.Update(t.Context(), service); !apierrors.IsInvalid(err) || ip == "" {
		t.Errorf("the cluster IP %q became None: %v", ip, err)
	}
}

// generationOfStatus: the predicate compares generations.
func generationOfStatus(t *testing.T, c client.WithWatch) {
	web := newWeb(t, c)
	before := web.Generation
	web.Status.ReadyReplicas = 3
	testenv.Must(t, c.Status().Update(t.Context(), web))
	if web.Generation != before {
		t.Errorf("the generation is %d, before %d", web.Generation, before)
	}
	web.Spec.Image = "nginx:1.29"
	testenv.Must(t, c.Update(t.Context(), web))
	if web.Generation == before {
		t.Error("a change of the spec has the same generation")
	}
}

// lateFinalizer deletes an object that has a finalizer: it stays, with a time, and gets no other finalizer.
func lateFinalizer(t *testing.T, c client.WithWatch) {
	web := newWeb(t, c)
	web.Finalizers = []string{"example.com/first"}
	testenv.Must(t, c.Update(t.Context(), web))
	testenv.Must(t, c.Delete(t.Context(), web))
	testenv.Must(t, c.Get(t.Context(), client.ObjectKeyFromObject(web), web))
	if web.DeletionTimestamp.IsZero() {
		t.Error("it has no deletionTimestamp")
	}
	web.Finalizers = append(web.Finalizers, "example.com/second")
	if err := c.Update(t.Context(), web); !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) {
		t.Errorf("a second finalizer: %v", err)
	}
	web.Finalizers = nil
	testenv.Must(t, c.Update(t.Context(), web))
}

func generatedName(t *testing.T, c client.WithWatch) {
	if one, another := newWeb(t, c).Name, newWeb(t, c).Name; one == another {
		t.Errorf("both have the name %s", one)
	}
}

func secondApply(t *testing.T, c client.WithWatch) {
	for _, key := range []string{"first", "second"} {
		child := corev1ac.ConfigMap("two-applies", "default").WithData(map[string]string{key: ""})
		testenv.Must(t, c.Apply(t.Context(), child, client.FieldOwner("test")))
	}
	var live corev1.ConfigMap
	testenv.Must(t, c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "two-applies"}, &live))
	if _, there := live.Data["first"]; there || len(live.Data) != 1 {
		t.Errorf("the data are %v", live.Data)
	}
}

// patchOfList: another program adds a container after the read.
func patchOfList(t *testing.T, c client.WithWatch) {
	mine := objects.NewDeployment(newWeb(t, c))
	testenv.Must(t, c.Create(t.Context(), mine))
	other, before := mine.DeepCopy(), mine.DeepCopy()
	spec := &other.Spec.Template.Spec
	spec.Containers = append(spec.Containers, corev1.Container{Name: "of-another", Image: "busybox"})
	testenv.Must(t, c.Update(t.Context(), other))
	mine.Spec.Template.Spec.Containers[0].Image = "nginx:1.29"
	testenv.Must(t, c.Patch(t.Context(), mine, client.MergeFrom(before)))
	if all := mine.Spec.Template.Spec.Containers; len(all) != 1 {
		t.Errorf("the containers are %+v", all)
	}
}
