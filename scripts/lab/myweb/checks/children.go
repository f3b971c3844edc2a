package checks

import (
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

func childrenAppear(t *suite.T) {
	spec := suite.WebSpec{Image: "registry.example:5000/team/web:1.2", PageContentHTML: new("<h1>Hello</h1>"),
		Replicas: new(int32(2))}
	web := t.Serve("web", spec)
	c := t.Children(web)
	t.Must(c.Follow(spec), "compare the children with the spec")
	for kind, o := range c.Objects() {
		if owner := metav1.GetControllerOf(o); owner == nil || owner.Kind != "MyWeb" || owner.Name != "web" ||
			owner.APIVersion != web.APIVersion {
			t.Errorf("expected that %s MyWeb web controls the %s; but it is controlled by %s", web.APIVersion, kind,
				suite.JSON(owner))
		}
	}
	checkDeployment(t, web, c.Deployment)
	checkService(t, c)
}

func checkDeployment(t *suite.T, web *suite.Web, d *appsv1.Deployment) {
	keys := slices.Sorted(maps.Keys(d.Spec.Selector.MatchLabels))
	if !slices.Equal(keys, []string{"app.kubernetes.io/instance", "app.kubernetes.io/name"}) ||
		len(d.Spec.Selector.MatchExpressions) > 0 {
		t.Errorf("the Deployment selects its pods by %s, not by app.kubernetes.io/name and instance alone",
			suite.JSON(d.Spec.Selector))
	}
	i, j := server(t, d)
	container := d.Spec.Template.Spec.Containers[i]
	if container.Image != web.Spec.Image {
		t.Errorf("expected the image %s; but it is %s", web.Spec.Image, container.Image)
	}
	for _, v := range d.Spec.Template.Spec.Volumes {
		if v.Name == container.VolumeMounts[j].Name && (v.ConfigMap == nil || v.ConfigMap.Name != web.Name) {
			t.Errorf("the volume mounted at %s is %s, want the ConfigMap %s", pageFolder, suite.JSON(v.VolumeSource),
				web.Name)
		}
	}
}

func checkService(t *suite.T, c *suite.Children) {
	s := c.Service.Spec
	if s.Type != corev1.ServiceTypeNodePort || len(s.Ports) != 1 || s.Ports[0].Port != 80 {
		t.Fatalf("the Service is a %s with ports %s, want a NodePort with port 80 alone", s.Type, suite.JSON(s.Ports))
	}
	if !maps.Equal(c.Deployment.Spec.Selector.MatchLabels, s.Selector) {
		t.Errorf("the Service selects %v, the Deployment %v", s.Selector, c.Deployment.Spec.Selector.MatchLabels)
	}
	target := s.Ports[0].TargetPort
	i, _ := server(t, c.Deployment)
	isNamed := func(p corev1.ContainerPort) bool { return p.Name == target.StrVal && p.ContainerPort == 80 }
	if target.IntValue() != 80 && !slices.ContainsFunc(c.Deployment.Spec.Template.Spec.Containers[i].Ports, isNamed) {
		t.Errorf("the Service sends to port %s of its pods, want 80", target.String())
	}
}

func podsApart(t *suite.T) {
	want := map[string]int{"web": 1, "web-web": 2}
	t.Create("web", suite.Sample())
	t.Create("web-web", replicas(2))
	for _, name := range slices.Sorted(maps.Keys(want)) {
		web, number := t.Completed(name), want[name]
		c := t.Children(web)
		selectors := map[string]string{"the Service": labels.FormatLabels(c.Service.Spec.Selector),
			"the Deployment": metav1.FormatLabelSelector(c.Deployment.Spec.Selector)}
		if t.Reports() {
			selectors["status.selector"] = web.Status.Selector
		}
		for what, selector := range selectors {
			found := pods(t, selector)
			strangers := slices.DeleteFunc(slices.Clone(found), func(p corev1.Pod) bool {
				return p.GenerateName == c.Deployment.Name+"-"+p.Labels[appsv1.DefaultDeploymentUniqueLabelKey]+"-"
			})
			if len(found) != number || len(strangers) > 0 {
				t.Errorf("expected that %s of %s finds its own %d pods; but by %q it finds %d pods, %d of them another's", what,
					name, number, selector, len(found), len(strangers))
			}
		}
	}
}

func statusReported(t *suite.T) {
	t.WantStatus()
	web := t.Serve("web", replicas(2))
	for kind, status := range map[string]metav1.ConditionStatus{
		"Available": metav1.ConditionTrue, "Degraded": metav1.ConditionFalse, "Progressing": ""} {
		switch c := web.Condition(kind); {
		case c.Status == "":
			t.Errorf("expected a condition %[1]s; but there is no condition %[1]s", kind)
		case status != "" && c.Status != status:
			t.Errorf("expected that %s is %s; but it is %s: %s: %s", kind, status, c.Status, c.Reason, c.Message)
		case c.ObservedGeneration != web.Generation:
			t.Errorf("expected that %s is about generation %d; but it is about %d", kind, web.Generation, c.ObservedGeneration)
		}
	}
	c := t.Children(web)
	if web.Status.ReadyReplicas != 2 {
		t.Errorf("expected status.readyReplicas 2; but it is %d", web.Status.ReadyReplicas)
	}
	wantPort(t, web, c, portOf(c.Service))
	t.Gate()
	t.Create("waiting", suite.Sample())
	t.Await("waiting", "has a status while its pods are not ready", 0, func(w *suite.Web) bool {
		return !w.Status.Completed && w.Status.ObservedGeneration == w.Generation &&
			w.Condition("Available").Status == metav1.ConditionFalse
	})
}

func pageAsItIs(t *suite.T) {
	pages := map[string]string{
		"marks":   `{{ .Values.page }} ${HOME} $(date) %s %d`,
		"quotes":  `<a href="x" title='y'>\n \ ` + "`" + `</a>`,
		"unicode": "Grüße, 世界 🌍 \u202e\u00a0",
		"lines":   "a\r\nb\n\n\tc ",
		"empty":   "",
		"large":   strings.Repeat("<p>operator</p>\n", 40000/16),
	}
	for name, page := range pages {
		t.Create(name, suite.WebSpec{Image: "nginx", PageContentHTML: &page, Replicas: new(int32(0))})
	}
	for name, page := range pages {
		data := t.Children(t.Completed(name)).ConfigMap.Data
		if have, there := data["index.html"]; !there || have != page {
			t.Errorf("page %s: index.html is %.60q (%d bytes), want %.60q (%d bytes)", name, have, len(have), page, len(page))
		}
	}
}

// longest is the largest number of characters of a page.
const longest = 40000

// largestPages are served, although the API server stores some characters as six bytes, and others as four.
func largestPages(t *suite.T) {
	pages := map[string]string{"escaped": "<", "wide": "😀"}
	for name, character := range pages {
		t.Create(name, page(strings.Repeat(character, longest)))
	}
	for name, character := range pages {
		converged(t, name)
		err := dryRun(t, fields{"spec": with(fields{"pageContentHtml": strings.Repeat(character, longest+1)})}, "")
		wantRefusal(t, "a page of one character more", err, "spec.pageContentHtml", "")
	}
	t.StaysQuiet(time.Second)
}
