package controller

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	webv1 "example.com/operator-workshop/03-client-go-controller/pkg/apis/myweb/v1"
	"example.com/operator-workshop/03-client-go-controller/pkg/generated/clientset/versioned"
)

// full is metadata with something in every field that Trim decides about.
func full(owners ...metav1.OwnerReference) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: "site", Namespace: "default", UID: "x", ResourceVersion: "7", Generation: 2,
		Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"c": "d"}, Finalizers: []string{"example.com/keep"},
		OwnerReferences: owners, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}}
}

func named(owners ...metav1.OwnerReference) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: "site", Namespace: "default", UID: "x", ResourceVersion: "7", OwnerReferences: owners}
}

func unmanaged(m metav1.ObjectMeta) metav1.ObjectMeta {
	m.ManagedFields = nil
	return m
}

func TestWhatIsKeptInTheCaches(t *testing.T) {
	ours := metav1.OwnerReference{APIVersion: webv1.SchemeGroupVersion.String(), Kind: "MyWeb", Name: "site", UID: "u-1", Controller: new(true)}
	theirs := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "r", UID: "r-1", Controller: new(true)}
	byAnnotation := full()
	byAnnotation.Annotations = map[string]string{annotationApplied: "u-1/0123"}
	data := map[string]string{"key": "much"}
	ports := corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, ClusterIP: "10.0.0.1", HealthCheckNodePort: 32000,
		Ports: []corev1.ServicePort{{Name: "http", Port: 80, NodePort: 30100}, {Name: "metrics", Port: 9090}}}
	held := corev1.ServiceSpec{HealthCheckNodePort: 32000, Ports: []corev1.ServicePort{{NodePort: 30100}, {}}}
	pods := appsv1.DeploymentSpec{Replicas: new(int32(3))}
	for name, test := range map[string]struct{ obj, want any }{
		"a MyWeb": {&webv1.MyWeb{ObjectMeta: full(), Spec: webv1.MyWebSpec{Image: "nginx"}},
			&webv1.MyWeb{ObjectMeta: unmanaged(full()), Spec: webv1.MyWebSpec{Image: "nginx"}}},
		"a page of ours": {&corev1.ConfigMap{ObjectMeta: full(ours), Data: data},
			&corev1.ConfigMap{ObjectMeta: unmanaged(full(ours)), Data: data}},
		"a page that lost its owner": {&corev1.ConfigMap{ObjectMeta: byAnnotation, Data: data},
			&corev1.ConfigMap{ObjectMeta: unmanaged(byAnnotation), Data: data}},
		"a Service of ours": {&corev1.Service{ObjectMeta: full(ours), Spec: ports},
			&corev1.Service{ObjectMeta: unmanaged(full(ours)), Spec: ports}},
		"a Deployment of ours": {&appsv1.Deployment{ObjectMeta: full(ours), Spec: pods},
			&appsv1.Deployment{ObjectMeta: unmanaged(full(ours)), Spec: pods}},
		"a ConfigMap of others": {&corev1.ConfigMap{ObjectMeta: full(), Data: data, BinaryData: map[string][]byte{"b": {1}}},
			&corev1.ConfigMap{ObjectMeta: named()}},
		"a Deployment of others": {&appsv1.Deployment{ObjectMeta: full(), Spec: pods, Status: appsv1.DeploymentStatus{Replicas: 3}},
			&appsv1.Deployment{ObjectMeta: named()}},
		"a Service of others": {&corev1.Service{ObjectMeta: full(), Spec: ports},
			&corev1.Service{ObjectMeta: named(), Spec: held}},
		"a ConfigMap with another controller": {&corev1.ConfigMap{ObjectMeta: full(theirs), Data: data},
			&corev1.ConfigMap{ObjectMeta: named(theirs)}},
		"what is no object": {"text", "text"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Trim(test.obj)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			again, err := Trim(got) // client-go may trim an object twice
			if diff := cmp.Diff(test.want, again); diff != "" || err != nil {
				t.Error("trimmed twice:", diff, err)
			}
		})
	}
}

// filled returns caches that were never started and hold the given objects.
func filled(t *testing.T, objects ...object) *Caches {
	t.Helper()
	nowhere := &rest.Config{Host: "http://192.0.2.1"}
	c, err := NewCaches(kubernetes.NewForConfigOrDie(nowhere), versioned.NewForConfigOrDie(nowhere), Trim)
	if err != nil {
		t.Fatal(err)
	}
	for _, obj := range objects {
		var informer cache.SharedIndexInformer
		switch obj.(type) {
		case *webv1.MyWeb:
			informer = c.Webs.Informer()
		case *corev1.Service:
			informer = c.Services.Informer()
		}
		if err := informer.GetIndexer().Add(obj); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func TestWhomAnObjectConcerns(t *testing.T) {
	site := myWeb()
	other := myWeb(func(w *webv1.MyWeb) { w.Name, w.UID, w.Spec.NodePortNumber = "other", "u-2", new(int32(30200)) })
	far := myWeb(func(w *webv1.MyWeb) { w.Namespace, w.UID = "far", "u-3" }) // it asks for the port of site too
	c := filled(t, site, other, far)
	at := func(namespace, name string, obj object) object {
		obj.SetNamespace(namespace)
		obj.SetName(name)
		return obj
	}
	service := func(spec corev1.ServiceSpec) object { return &corev1.Service{Spec: spec} }
	for name, test := range map[string]struct {
		obj  object
		want []string
	}{
		"a MyWeb concerns itself":                       {site, []string{"default/site"}},
		"a MyWeb that is not in the cache":              {myWeb(func(w *webv1.MyWeb) { w.Name = "new" }), []string{"default/new"}},
		"a child":                                       {owned("site", "u-1"), []string{"default/site"}},
		"a child with a name of its own":                {at("default", "x", owned("site", "u-1")), []string{"default/site"}},
		"a child by its annotation":                     {at("default", "x", owned("", "", ownerless, made("u-1"))), []string{"default/site"}},
		"an owner with the right name and a wrong UID":  {at("default", "x", owned("site", "u-0")), nil},
		"an owner of another kind with the right UID":   {at("default", "x", owned("site", "u-1", ownerKind("apps/v1", "Deployment"))), nil},
		"a foreign object with the name":                {at("default", "site", &appsv1.Deployment{}), []string{"default/site"}},
		"the name in another namespace":                 {at("elsewhere", "site", &appsv1.Deployment{}), nil},
		"a foreign object":                              {at("default", "x", &corev1.ConfigMap{}), nil},
		"the child of one with the name of another":     {at("default", "other", owned("site", "u-1")), []string{"default/other", "default/site"}},
		"a Service on a port that two ask for":          {at("x", "x", service(corev1.ServiceSpec{Ports: []corev1.ServicePort{{NodePort: 30100}}})), []string{"default/site", "far/site"}},
		"a Service on a port that nobody asks for":      {at("x", "x", service(corev1.ServiceSpec{Ports: []corev1.ServicePort{{NodePort: 30300}}})), nil},
		"a Service without a node port":                 {at("x", "x", service(corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}})), nil},
		"a Service whose health check holds a port":     {at("x", "x", service(corev1.ServiceSpec{HealthCheckNodePort: 30200})), []string{"default/other"}},
		"a Service with two ports that are both wanted": {at("x", "x", service(corev1.ServiceSpec{Ports: []corev1.ServicePort{{NodePort: 30100}, {NodePort: 30200}}})), []string{"default/other", "default/site", "far/site"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, web := range c.concerned(test.obj) {
				got = append(got, web.String())
			}
			slices.Sort(got)
			if got = slices.Compact(got); !slices.Equal(got, test.want) {
				t.Errorf("it concerns %v, want %v", got, test.want)
			}
		})
	}
}

func TestWhoHoldsANodePort(t *testing.T) {
	ports := corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80, NodePort: 30100}}}
	service := func(namespace, name string, change func(*corev1.Service)) object {
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, OwnerReferences: owned("site", "u-1").OwnerReferences}, Spec: ports}
		change(s)
		return s
	}
	foreign := func(s *corev1.Service) { s.OwnerReferences = nil }
	same := func(*corev1.Service) {}
	for name, test := range map[string]struct {
		services []object
		want     string
	}{
		"nobody":                          {nil, ""},
		"its own Service":                 {[]object{service("default", "site", same)}, ""},
		"a foreign Service":               {[]object{service("x", "y", foreign)}, "x/y"},
		"a foreign Service with its name": {[]object{service("default", "site", foreign)}, "default/site"},
		"a second Service that it owns":   {[]object{service("default", "old", same)}, "default/old"},
		"the health check of another":     {[]object{service("x", "y", func(s *corev1.Service) { s.Spec = corev1.ServiceSpec{HealthCheckNodePort: 30100} })}, "x/y"},
		"another port":                    {[]object{service("x", "y", func(s *corev1.Service) { s.Spec = corev1.ServiceSpec{Ports: []corev1.ServicePort{{NodePort: 30101}}} })}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := &Controller{caches: filled(t, test.services...)}
			if got := c.holder(myWeb(), 30100); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
