package webhook

import (
	"context"
	"fmt"
	"html"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
)

// defaulter gives a page to MyWebs that have none. A schema's default is a constant; this one names the
// MyWeb.
type defaulter struct{}

// Default implements admission.Defaulter. A page that is there stays, the empty one included: that was
// somebody's choice.
func (defaulter) Default(_ context.Context, web *webv1.MyWeb) error {
	if web.Spec.PageContentHTML == nil {
		web.Spec.PageContentHTML = new(defaultPage(web.Name, web.GenerateName))
	}
	return nil
}

// defaultPage is a small page that names a MyWeb. One that asks for a generated name has none yet when
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
`, html.EscapeString(name)) // names are harmless today; whoever makes HTML escapes all the same
}
