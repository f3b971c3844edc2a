package webhook

import (
	"strings"
	"testing"

	"github.com/onsi/gomega"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
)

// refused asserts that err is a refusal of spec.nodePortNumber that names the given MyWeb.
func refused(g gomega.Gomega, err error, holder *webv1.MyWeb) {
	g.Expect(apierrors.IsInvalid(err)).To(gomega.BeTrue(), "got %v", err)
	cause, _ := apierrors.StatusCause(err, metav1.CauseTypeFieldValueInvalid)
	g.Expect(cause.Field).To(gomega.Equal("spec.nodePortNumber"))
	g.Expect(cause.Message).To(gomega.ContainSubstring("MyWeb " + client.ObjectKeyFromObject(holder).String() +
		" has this port"))
	g.Expect(err.Error()).To(gomega.ContainSubstring("spec.nodePortNumber"))
}

func TestATakenNodePortIsRefused(t *testing.T) {
	serve(t)
	g := gomega.NewWithT(t)
	first := create(t, myweb(namespace(t), "first", port(30500)))
	elsewhere := namespace(t)
	second := func(n int32) error {
		return admin.Create(t.Context(), myweb(elsewhere, "second", port(n)), client.DryRunAll)
	}
	eventually(t, func(g gomega.Gomega) { refused(g, second(30500), first) }) // the cache is a moment behind
	g.Expect(second(30501)).To(gomega.Succeed(), "a free port")

	third := create(t, myweb(elsewhere, "third", port(30502)))
	third.Spec.NodePortNumber = new(int32(30500))
	refused(g, admin.Update(t.Context(), third), first)
	third.Spec.NodePortNumber = nil
	g.Expect(admin.Update(t.Context(), third)).To(gomega.Succeed(), "gave its port up")
	third.Status.NodePort = 30502 // as the operator reports: the port is kept
	must(t, admin.Status().Update(t.Context(), third))
	eventually(t, func(g gomega.Gomega) { refused(g, second(30502), third) })
	third.Spec.NodePortNumber = new(int32(30502))
	g.Expect(admin.Update(t.Context(), third)).To(gomega.Succeed(), "asked for what it has")

	must(t, admin.Delete(t.Context(), first))
	eventually(t, func(g gomega.Gomega) { g.Expect(second(30500)).To(gomega.Succeed(), "the port is free again") })
	recreated := myweb(first.Namespace, first.Name, port(30500))
	g.Expect(admin.Create(t.Context(), recreated)).To(gomega.Succeed(), "the same name at once")
	must(t, admin.Delete(t.Context(), recreated))
}

func TestWhatCollidesAlreadyStaysEditable(t *testing.T) {
	ns := namespace(t)
	withoutWebhooks(t, ns)
	create(t, myweb(ns, "one", port(30510)))
	two := create(t, myweb(ns, "two", port(30510), func(web *webv1.MyWeb) {
		web.Finalizers = []string{"example.com/wait"}
	}))
	serve(t)
	eventually(t, func(g gomega.Gomega) {
		g.Expect(admin.Create(t.Context(), myweb(ns, "three", port(30510)), client.DryRunAll)).NotTo(gomega.Succeed())
	})
	for name, change := range map[string]func(){
		"a label":   func() { two.Labels = map[string]string{"a": "b"} },
		"replicas":  func() { two.Spec.Replicas = new(int32(3)) },
		"the image": func() { two.Spec.Image = "nginx:1.30" },
		"the page":  func() { two.Spec.PageContentHTML = new("<p>two</p>") },
	} {
		change()
		if err := admin.Update(t.Context(), two); err != nil {
			t.Errorf("%s could not be changed: %v", name, err)
		}
	}
	two.Status.ReadyReplicas = 1
	must(t, admin.Status().Update(t.Context(), two))

	must(t, admin.Delete(t.Context(), two))
	must(t, admin.Get(t.Context(), client.ObjectKeyFromObject(two), two))
	two.Spec.NodePortNumber = nil
	must(t, admin.Update(t.Context(), two))
	two.Spec.NodePortNumber = new(int32(30510))
	if err := admin.Update(t.Context(), two); err != nil {
		t.Errorf("a MyWeb that is being deleted is nobody's business: %v", err)
	}
	two.Finalizers = nil
	must(t, admin.Update(t.Context(), two))
}

func TestWarningsReachTheClient(t *testing.T) {
	serve(t)
	ns := namespace(t)
	web := myweb(ns, "web")
	for _, step := range []struct {
		name, want string
		do         func() error
	}{
		{"created with a tag", "", func() error { return admin.Create(t.Context(), web) }},
		{"the tag taken away", "neither tag nor digest", func() error {
			web.Spec.Image = "registry:5000/nginx"
			return admin.Update(t.Context(), web)
		}},
		{"something else changed", "", func() error {
			web.Spec.Replicas = new(int32(2))
			return admin.Update(t.Context(), web)
		}},
		{"latest", "the tag latest", func() error { web.Spec.Image = "nginx:latest"; return admin.Update(t.Context(), web) }},
		{"a dry run", "neither tag nor digest", func() error {
			return admin.Create(t.Context(), myweb(ns, "dry", func(w *webv1.MyWeb) { w.Spec.Image = "nginx" }), client.DryRunAll)
		}},
		{"deleted", "", func() error { return admin.Delete(t.Context(), web) }},
	} {
		got := since(func() {
			if err := step.do(); err != nil {
				t.Fatalf("%s: %v", step.name, err)
			}
		})
		if step.want == "" && got != "" || strings.Count(got, "\n") > 1 || !strings.Contains(got, step.want) {
			t.Errorf("%s: the client heard %q, want %q", step.name, got, step.want)
		}
	}
}

func TestAMyWebWithoutPageGetsOne(t *testing.T) {
	ns := namespace(t)
	withoutWebhooks(t, ns)
	old := create(t, myweb(ns, "old"))
	serve(t)
	g := gomega.NewWithT(t)

	web := create(t, myweb(ns, "web"))
	g.Expect(*web.Spec.PageContentHTML).To(gomega.ContainSubstring("<h1>web</h1>"))
	web.Spec.PageContentHTML = nil
	must(t, admin.Update(t.Context(), web))
	g.Expect(*web.Spec.PageContentHTML).To(gomega.ContainSubstring("<h1>web</h1>"), "the page was taken away")

	empty := create(t, myweb(ns, "empty", page("")))
	g.Expect(*empty.Spec.PageContentHTML).To(gomega.BeEmpty(), "the empty page is a choice")
	empty.Spec.Replicas = new(int32(2))
	must(t, admin.Update(t.Context(), empty))
	g.Expect(*empty.Spec.PageContentHTML).To(gomega.BeEmpty())

	old.Labels = map[string]string{"a": "b"}
	must(t, admin.Update(t.Context(), old))
	g.Expect(old.Spec.PageContentHTML).To(gomega.BeNil(), "an unrelated edit must not roll the pods")

	generated := myweb(ns, "")
	generated.GenerateName = "blog-"
	create(t, generated)
	g.Expect(*generated.Spec.PageContentHTML).To(gomega.ContainSubstring("<h1>blog-…</h1>"))
}

func TestApplyingTheSameAgainChangesNothing(t *testing.T) {
	serve(t)
	ns := namespace(t)
	apply := func() string {
		web := myweb(ns, "applied")
		u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(web)
		must(t, err)
		delete(u, "status")
		u["apiVersion"], u["kind"] = webv1.SchemeGroupVersion.String(), "MyWeb"
		object := &unstructured.Unstructured{Object: u}
		must(t, admin.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("somebody")))
		must(t, admin.Get(t.Context(), client.ObjectKeyFromObject(web), web))
		if web.Spec.PageContentHTML == nil {
			t.Error("no page")
		}
		return web.ResourceVersion
	}
	first := apply()
	// Longer than a second: a change of managed fields alone shows in their time, which has seconds.
	gomega.NewWithT(t).Consistently(apply, "1500ms", "100ms").Should(gomega.Equal(first))
}
