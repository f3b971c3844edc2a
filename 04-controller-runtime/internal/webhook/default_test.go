package webhook

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
)

func TestDefaultPage(t *testing.T) {
	for name, test := range map[string]struct{ name, generateName, want string }{
		"names the MyWeb":            {"blog", "", "<h1>blog</h1>"},
		"begins like a generated":    {"", "blog-", "<h1>blog-…</h1>"},
		"the name before its prefix": {"blog-x1", "blog-", "<h1>blog-x1</h1>"},
		"escapes":                    {`<b>&"`, "", "<h1>&lt;b&gt;&amp;&#34;</h1>"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := defaultPage(test.name, test.generateName); !strings.Contains(got, test.want) {
				t.Errorf("want %q in:\n%s", test.want, got)
			}
		})
	}
}

func TestDefaultTouchesNothingElse(t *testing.T) {
	for name, spec := range map[string]any{
		"a page":             map[string]any{"pageContentHtml": "<p>mine</p>"},
		"the empty page":     map[string]any{"pageContentHtml": ""},
		"a page of 5":        map[string]any{"pageContentHtml": int64(5)},
		"no spec":            nil,
		"a spec of one word": "x",
	} {
		t.Run(name, func(t *testing.T) {
			web := raw("default", "web", spec)
			if err := (defaulter{}).Default(t.Context(), web); err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(raw("default", "web", spec), web); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// raw is a MyWeb of any shape; nil means without spec.
func raw(namespace, name string, spec any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(webv1.SchemeGroupVersion.WithKind("MyWeb"))
	u.SetNamespace(namespace)
	u.SetName(name)
	if spec != nil {
		u.Object["spec"] = spec
	}
	return u
}
