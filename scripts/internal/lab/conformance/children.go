package conformance

import (
	"maps"
	"slices"

	"example.com/operator-workshop/scripts/internal/lab/suite"
)

func children() []suite.Check {
	return []suite.Check{
		{ID: "behaviour/01-children-appear", Group: "1", Fast: true, Run: childrenAppear,
			Title: "ConfigMap, Deployment and NodePort Service appear, controlled by the MyWeb"},
	}
}

func childrenAppear(t *suite.T) {
	web := t.Serve("web", suite.Sample())
	c := t.Children(web)
	if page := c.ConfigMap.Data["index.html"]; page != *web.Spec.PageContentHTML {
		t.Errorf("index.html is %q, the page is %q", page, *web.Spec.PageContentHTML)
	}
	keys := slices.Sorted(maps.Keys(c.Deployment.Spec.Selector.MatchLabels))
	if !slices.Equal(keys, []string{"app.kubernetes.io/instance", "app.kubernetes.io/name"}) {
		t.Errorf("the Deployment selects its pods by %v, not by app.kubernetes.io/name and instance alone", keys)
	}
	if !maps.Equal(c.Deployment.Spec.Selector.MatchLabels, c.Service.Spec.Selector) {
		t.Errorf("the Service selects %v, the Deployment %v", c.Service.Spec.Selector, c.Deployment.Spec.Selector.MatchLabels)
	}
}
