package webhook

import (
	"context"
	"fmt"
	"html"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// defaulter gives a page to MyWebs that have none. A schema's default is a constant; this page names the MyWeb. The
// defaulter works on the user's input, not on a webv1.MyWeb: this type cannot hold a field of a wrong type, and would
// give an image "" to a MyWeb without an image. The schema reports both errors.
type defaulter struct{}

// Default implements admission.Defaulter. It keeps an existing page, even an empty page, because the page is a
// user's choice.
func (defaulter) Default(_ context.Context, web *unstructured.Unstructured) error {
	if spec, ok := web.Object["spec"].(map[string]any); ok && spec["pageContentHtml"] == nil {
		spec["pageContentHtml"] = defaultPage(web.GetName(), web.GetGenerateName())
	}
	return nil
}

// defaultPage returns a small page that names a MyWeb. A MyWeb that asks for a generated name has no name yet when
// defaults are filled in; then the page says how the name will begin.
func defaultPage(name, generateName string) string {
	if name == "" {
		name = generateName + "…"
	}
	return fmt.Sprintf(`<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>%[1]s</title></head>
<body><h1>%[1]s</h1><p>This MyWeb has no page yet: set spec.pageContentHtml.</p></body>
</html>
`, html.EscapeString(name)) // names are harmless today; a program that makes HTML escapes all the same
}
