package webhook

import (
	"strings"
	"testing"

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

func TestDefaultLeavesAPageAlone(t *testing.T) {
	for name, page := range map[string]string{"a page": "<p>mine</p>", "the empty page": ""} {
		t.Run(name, func(t *testing.T) {
			web := &webv1.MyWeb{Spec: webv1.MyWebSpec{PageContentHTML: new(page)}}
			if err := (defaulter{}).Default(t.Context(), web); err != nil || *web.Spec.PageContentHTML != page {
				t.Errorf("%v, page is %q, want %q", err, *web.Spec.PageContentHTML, page)
			}
		})
	}
}
