package webhook

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
)

func TestImageWarnings(t *testing.T) {
	const (
		sha256 = "@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
		sha384 = "@sha384:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	)
	for name, test := range map[string]struct{ image, want string }{
		"a bare name":                              {"nginx", "neither tag nor digest"},
		"a path":                                   {"team/web", "neither tag nor digest"},
		"a registry":                               {"registry.example.com/web", "neither tag nor digest"},
		"a registry's port is no tag":              {"registry:5000/web", "neither tag nor digest"},
		"a port and an IPv6 address":               {"[::1]:5000/web", "neither tag nor digest"},
		"localhost is a registry":                  {"localhost/web", "neither tag nor digest"},
		"the tag latest":                           {"nginx:latest", "the tag latest"},
		"the tag latest behind a port":             {"registry:5000/team/web:latest", "the tag latest"},
		"a repository called latest":               {"registry:5000/latest:1.0", ""},
		"another tag":                              {"nginx:1.29", ""},
		"a tag that only begins so":                {"nginx:latest-alpine", ""},
		"a tag in capitals is another tag":         {"nginx:LATEST", ""},
		"a tag behind a port":                      {"registry:5000/team/web:v1", ""},
		"a digest":                                 {"nginx" + sha256, ""},
		"a digest behind a port":                   {"registry:5000/team/web" + sha256, ""},
		"a digest decides, whatever the tag":       {"nginx:latest" + sha256, ""},
		"a longer digest":                          {"nginx" + sha384, ""},
		"what the schema accepts, but nobody else": {strings.Repeat("0123456789abcdef", 4), "no node can pull"},
	} {
		t.Run(name, func(t *testing.T) {
			got := imageWarnings(test.image)
			switch {
			case test.want == "" && len(got) != 0:
				t.Errorf("%s: got %q, want no warning", test.image, got)
			case test.want != "" && (len(got) != 1 || !strings.Contains(got[0], test.want)):
				t.Errorf("%s: got %q, want one warning with %q", test.image, got, test.want)
			}
			for _, w := range got {
				if len(w) > 120 {
					t.Errorf("the warning has %d bytes, clients show 120: %q", len(w), w)
				}
			}
		})
	}
}

func TestNodePort(t *testing.T) {
	for name, test := range map[string]struct {
		asked *int32
		has   int32
		want  int32
	}{
		"none yet":                           {nil, 0, 0},
		"the one asked for":                  {new(int32(30100)), 0, 30100},
		"the allocated one":                  {nil, 30200, 30200},
		"the one asked for is the next port": {new(int32(30100)), 30200, 30100},
	} {
		t.Run(name, func(t *testing.T) {
			web := &webv1.MyWeb{Spec: webv1.MyWebSpec{NodePortNumber: test.asked}, Status: webv1.MyWebStatus{NodePort: test.has}}
			if got := nodePort(web); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}

func TestOtherThan(t *testing.T) {
	web := func(namespace, name string) webv1.MyWeb {
		return webv1.MyWeb{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	self := web("b", "self")
	for name, test := range map[string]struct {
		all  []webv1.MyWeb
		want string
	}{
		"nobody":                    {nil, ""},
		"itself":                    {[]webv1.MyWeb{self}, ""},
		"one beside itself":         {[]webv1.MyWeb{self, web("b", "x")}, "b/x"},
		"its name elsewhere":        {[]webv1.MyWeb{web("a", "self")}, "a/self"},
		"the first of several":      {[]webv1.MyWeb{web("b", "y"), web("b", "x"), self, web("c", "a")}, "b/x"},
		"by namespace, then name":   {[]webv1.MyWeb{web("b", "a"), web("a", "z")}, "a/z"},
		"a namespace like its name": {[]webv1.MyWeb{web("self", "b")}, "self/b"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if w := otherThan(&self, test.all); w != nil {
				got = w.Namespace + "/" + w.Name
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
