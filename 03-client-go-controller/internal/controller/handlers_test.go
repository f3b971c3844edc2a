package controller

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"example.com/operator-workshop/03-client-go-controller/internal/myweb"
	webv1 "example.com/operator-workshop/03-client-go-controller/pkg/apis/myweb/v1"
	"example.com/operator-workshop/03-client-go-controller/pkg/generated/clientset/versioned"
	"example.com/operator-workshop/03-client-go-controller/test/mywebtest"
)

// filled returns a controller whose informers were never started, with the given MyWebs in its cache.
func filled(t *testing.T, webs ...*webv1.MyWeb) *Controller {
	t.Helper()
	nowhere := &rest.Config{Host: "http://192.0.2.1"}
	c, err := NewController(kubernetes.NewForConfigOrDie(nowhere), versioned.NewForConfigOrDie(nowhere), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, web := range webs {
		if err := c.informers["MyWeb"].GetIndexer().Add(web); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func service(spec corev1.ServiceSpec) myweb.Object { return &corev1.Service{Spec: spec} }

func withPorts(ports ...int32) (spec corev1.ServiceSpec) {
	for _, port := range ports {
		spec.Ports = append(spec.Ports, corev1.ServicePort{Port: 80, NodePort: port})
	}
	return spec
}

func at(namespace, name string, obj myweb.Object) myweb.Object {
	obj.SetNamespace(namespace)
	obj.SetName(name)
	return obj
}

func TestWhichMyWebsAnObjectAffects(t *testing.T) {
	site := mywebtest.New()
	other := mywebtest.New(func(w *webv1.MyWeb) {
		w.Name, w.UID, w.Spec.NodePortNumber = "other", "u-2", new(int32(30200))
	})
	far := mywebtest.New(func(w *webv1.MyWeb) { w.Namespace, w.UID = "far", "u-3" }) // it asks for the port of site, too
	holder := mywebtest.New(func(w *webv1.MyWeb) { w.Name, w.UID, w.Status.NodePort = "holder", "u-4", 30200 })
	c := filled(t, site, other, far)
	for name, test := range map[string]struct {
		obj  myweb.Object
		want []string
	}{
		"a MyWeb": {site, []string{"default/site"}},
		"a MyWeb that is not in the cache": {
			mywebtest.New(func(w *webv1.MyWeb) { w.Name = "new" }), []string{"default/new"}},
		"a MyWeb with a port":       {holder, []string{"default/holder"}},
		"a child":                   {mywebtest.Owned("site", "u-1"), []string{"default/site"}},
		"a child with another name": {at("default", "x", mywebtest.Owned("site", "u-1")), []string{"default/site"}},
		"a child by its annotation": {
			at("default", "x", mywebtest.Owned("", "", mywebtest.Ownerless, made("u-1"))), []string{"default/site"}},
		"an owner with the right name and a wrong UID": {at("default", "x", mywebtest.Owned("site", "u-0")), nil},
		"an owner of another kind with the right UID": {
			at("default", "x", mywebtest.Owned("site", "u-1", mywebtest.OwnerKind("apps/v1", "Deployment"))), nil},
		"an unmanaged object with the name": {at("default", "site", &appsv1.Deployment{}), []string{"default/site"}},
		"the name in another namespace":     {at("elsewhere", "site", &appsv1.Deployment{}), nil},
		"an unmanaged object":               {at("default", "x", &corev1.ConfigMap{}), nil},
		"the child of one with the name of another": {
			at("default", "other", mywebtest.Owned("site", "u-1")), []string{"default/other", "default/site"}},
		"a Service on a port that two MyWebs ask for": {
			at("x", "x", service(withPorts(30100))), []string{"default/site", "far/site"}},
		"a Service on a port that no MyWeb asks for": {at("x", "x", service(withPorts(30300))), nil},
		"a Service without a node port":              {at("x", "x", service(withPorts(0))), nil},
		"a Service whose health check holds a port": {
			at("x", "x", service(corev1.ServiceSpec{HealthCheckNodePort: 30200})), []string{"default/other"}},
		"a Service with two ports that are both wanted": {at("x", "x", service(withPorts(30100, 30200))),
			[]string{"default/other", "default/site", "far/site"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, web := range c.mapToMyWebs(test.obj) {
				got = append(got, web.String())
			}
			slices.Sort(got)
			if got = slices.Compact(got); !slices.Equal(got, test.want) {
				t.Errorf("it affects %v, want %v", got, test.want)
			}
		})
	}
}

func made(uid string) func(*corev1.ConfigMap) {
	return func(c *corev1.ConfigMap) {
		c.Annotations = map[string]string{myweb.Kind.Annotation(): uid + "/0123456789abcdef"}
	}
}
