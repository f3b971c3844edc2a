package v1alpha1

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1alpha1 "github.com/example/memcached-operator/api/v1alpha1"
)

// memcached returns a Memcached with an image that causes no warning, changed.
func memcached(name string, change ...func(*cachev1alpha1.MemcachedSpec)) *cachev1alpha1.Memcached {
	m := &cachev1alpha1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: cachev1alpha1.MemcachedSpec{Image: "memcached:1.6-alpine"}}
	for _, f := range change {
		f(&m.Spec)
	}
	return m
}

func image(name string) func(*cachev1alpha1.MemcachedSpec) {
	return func(s *cachev1alpha1.MemcachedSpec) { s.Image = name }
}

func configured(name string) func(*cachev1alpha1.MemcachedSpec) {
	return func(s *cachev1alpha1.MemcachedSpec) { s.ConfigRef = &cachev1alpha1.ConfigReference{Name: name} }
}

var _ = Describe("The webhooks of Memcacheds", func() {
	var m *cachev1alpha1.Memcached

	BeforeEach(func() {
		m = memcached("site")
		said.Reset()
	})
	AfterEach(func() {
		Expect(client.IgnoreNotFound(k8sClient.Delete(ctx, memcached("site")))).To(Succeed())
	})

	It("fill in the name of the ConfigMap, which depends on the Memcached's own", func() {
		m.Spec.ConfigRef = &cachev1alpha1.ConfigReference{}
		Expect(k8sClient.Create(ctx, m)).To(Succeed())
		Expect(m.Spec.ConfigRef.Name).To(Equal("site"))
		Expect(heard()).To(ConsistOf(ContainSubstring("ConfigMap site does not exist yet: the Memcached waits for it")))
	})

	It("leave a name alone that is there, and a Memcached without ConfigMap", func() {
		Expect(k8sClient.Create(ctx, m)).To(Succeed())
		Expect(m.Spec.ConfigRef).To(BeNil())
		m.Spec.ConfigRef = &cachev1alpha1.ConfigReference{Name: "other"}
		Expect(k8sClient.Update(ctx, m)).To(Succeed())
		Expect(m.Spec.ConfigRef.Name).To(Equal("other"))
	})

	It("do not know a name that is still to be generated", func() {
		m.Name, m.GenerateName, m.Spec.ConfigRef = "", "site-", &cachev1alpha1.ConfigReference{}
		Expect(k8sClient.Create(ctx, m)).To(Succeed())
		if name := m.Spec.ConfigRef.Name; name != "" && name != m.Name {
			Fail("the ConfigMap is " + name)
		}
		Expect(k8sClient.Delete(ctx, m)).To(Succeed())
	})

	It("refuse an image that no container runtime takes", func() {
		m.Spec.Image = "Memcached:1.6"
		err := k8sClient.Create(ctx, m)
		Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%v", err)
		Expect(err).To(MatchError(And(ContainSubstring("spec.image"),
			ContainSubstring("[registry[:port]/]path[:tag][@digest]"), ContainSubstring("must be lowercase"))))
	})

	It("warn of an image that may change, once", func() {
		m.Spec.Image = "registry:5000/memcached"
		Expect(k8sClient.Create(ctx, m)).To(Succeed())
		Expect(heard()).To(ConsistOf(ContainSubstring("neither tag nor digest")))
		m.Spec.Size = 2
		Expect(k8sClient.Update(ctx, m)).To(Succeed())
		Expect(heard()).To(BeEmpty(), "an edit of another field")
		m.Spec.Image = "registry:5000/memcached:latest"
		Expect(k8sClient.Update(ctx, m)).To(Succeed())
		Expect(heard()).To(ConsistOf(ContainSubstring("the tag latest")))
	})

	It("warn of a ConfigMap with a bad value, and never refuse", func() {
		Expect(k8sClient.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "bad"},
			Data: map[string]string{"memoryMB": "much"}})).To(Succeed())
		m.Spec.ConfigRef = &cachev1alpha1.ConfigReference{Name: "bad"}
		Eventually(func(g Gomega) { // the cache is a moment behind
			g.Expect(k8sClient.Create(ctx, m.DeepCopy(), client.DryRunAll)).To(Succeed())
			g.Expect(heard()).To(ConsistOf(ContainSubstring(`ConfigMap bad: memoryMB is "much"`)))
		}).Should(Succeed())
	})

	It("stay out of the way of an object that is being deleted", func() {
		m.Finalizers = []string{"example.com/keep"}
		Expect(k8sClient.Create(ctx, m)).To(Succeed())
		Expect(k8sClient.Delete(ctx, m)).To(Succeed())
		Expect(k8sClient.Get(ctx, client.ObjectKeyFromObject(m), m)).To(Succeed())
		m.Finalizers, m.Spec.Image = nil, "Memcached::"
		Expect(k8sClient.Update(ctx, m)).To(Succeed())
	})
})

// TestWhatIsSaidOfAnImage needs no API server.
func TestWhatIsSaidOfAnImage(t *testing.T) {
	digest := "@sha256:" + strings.Repeat("0123456789abcdef", 4)
	const none, latest = "neither tag nor digest", "the tag latest"
	for name, test := range map[string]struct {
		image   string
		warning string
		refused bool
	}{
		"the operator's default":        {"", "", false},
		"a tag":                         {"memcached:1.6-alpine", "", false},
		"no tag":                        {"memcached", none, false},
		"a registry with a port":        {"registry:5000/memcached", none, false},
		"that, and a tag":               {"registry:5000/team/memcached:1.6", "", false},
		"a digest":                      {"memcached" + digest, "", false},
		"a registry, a tag, a digest":   {"registry:5000/memcached:latest" + digest, "", false},
		"the tag latest":                {"memcached:latest", latest, false},
		"a registry by its address":     {"[::1]:5000/memcached:1.6", "", false},
		"a name that ends with a colon": {"memcached:", "", true},
		"an upper-case path":            {"Memcached:1.6", "", true},
		"a blank":                       {"memcached :1.6", "", true},
		"a short digest":                {"memcached@sha256:0123", "", true},
		"a scheme":                      {"https://registry/memcached", "", true},
		"a port without a registry":     {":5000/memcached", "", true},
		"64 hex digits and no more":     {strings.Repeat("a", 64), "", true},
	} {
		t.Run(name, func(t *testing.T) {
			warnings, err := judgeImage(memcached("site", image(test.image)))
			if apierrors.IsInvalid(err) != test.refused || (err != nil) != test.refused {
				t.Errorf("refused: %v", err)
			}
			if got := strings.Join(warnings, "\n"); (got == "") != (test.warning == "") ||
				!strings.Contains(got, test.warning) || len(got) > 120 {
				t.Errorf("warned: %q, want %q", got, test.warning)
			}
		})
	}
}

// configs returns one ConfigMap, or an error.
type configs struct {
	client.Reader
	data map[string]string
	err  error
}

func (c configs) Get(_ context.Context, _ client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	obj.(*corev1.ConfigMap).Data = c.data
	return c.err
}

func TestWhatIsSaidOfAConfigMap(t *testing.T) {
	missing := apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, "config")
	for name, test := range map[string]struct {
		configs  configs
		old, now *cachev1alpha1.Memcached
		want     []string
	}{
		"none is named":             {configs{err: missing}, nil, memcached("site"), nil},
		"the name is not known yet": {configs{err: missing}, nil, memcached("", configured("")), nil},
		"it is well": {
			configs{data: map[string]string{"memoryMB": "128"}}, nil, memcached("site", configured("config")), nil},
		"it does not exist": {configs{err: missing}, nil, memcached("site", configured("config")),
			[]string{"ConfigMap config does not exist yet: the Memcached waits for it"}},
		"it cannot be read": {
			configs{err: errors.New("unknown namespace for the cache")}, nil, memcached("site", configured("config")), nil},
		"a bad value": {configs{data: map[string]string{"verbose": "9"}}, nil, memcached("site",
			configured("config")), []string{`ConfigMap config: verbose is "9": it must be an integer from 0 to 3`}},
		"an edit of another field": {configs{err: missing}, memcached("site", configured("config")),
			memcached("site", configured("config"), image("memcached:1.6.39")), nil},
		"an edit that names it": {configs{err: missing}, memcached("site"), memcached("site", configured("config")),
			[]string{"ConfigMap config does not exist yet: the Memcached waits for it"}},
		"an edit that names another": {configs{err: missing}, memcached("site", configured("old")), memcached("site",
			configured("config")), []string{"ConfigMap config does not exist yet: the Memcached waits for it"}},
		"an edit that names none": {configs{err: missing}, memcached("site", configured("old")), memcached("site"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			v := &MemcachedValidator{Configs: test.configs}
			warnings, err := v.ValidateCreate(t.Context(), test.now)
			if test.old != nil {
				warnings, err = v.ValidateUpdate(t.Context(), test.old, test.now)
			}
			if diff := cmp.Diff(test.want, []string(warnings)); diff != "" || err != nil {
				t.Error(diff, err)
			}
		})
	}
}

func TestABadImageThatIsThereDoesNotKeepPeopleFromEditing(t *testing.T) {
	v, old := &MemcachedValidator{}, memcached("site", image("Memcached::"))
	now := old.DeepCopy()
	now.Spec.Size = 3
	if warnings, err := v.ValidateUpdate(t.Context(), old, now); err != nil || len(warnings) > 0 {
		t.Errorf("%v, %v", warnings, err)
	}
	if warnings, err := v.ValidateDelete(t.Context(), now); err != nil || len(warnings) > 0 {
		t.Errorf("%v, %v", warnings, err)
	}
}
