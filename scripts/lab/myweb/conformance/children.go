package conformance

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

func childrenAppear(t *suite.T) {
	spec := suite.Sample()
	spec.Image, spec.Replicas = "registry.example:5000/team/web:1.2", new(int32(2))
	web := t.Serve("web", spec)
	c := t.Children(web)
	if page := c.ConfigMap.Data["index.html"]; page != *spec.PageContentHTML {
		t.Errorf("expected the page %q in index.html; but it has %q", *spec.PageContentHTML, page)
	}
	for kind, o := range c.Objects() {
		owner := metav1.GetControllerOf(o)
		if owner == nil {
			t.Errorf("expected that %s MyWeb web controls the %s; but nothing controls it", web.APIVersion, kind)
		} else if owner.Kind != "MyWeb" || owner.Name != "web" || owner.APIVersion != web.APIVersion {
			t.Errorf("expected that %s MyWeb web controls the %s; but %s %s %s does", web.APIVersion, kind, owner.APIVersion,
				owner.Kind, owner.Name)
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
	if *d.Spec.Replicas != *web.Spec.Replicas {
		t.Errorf("expected a Deployment with %d replicas; but it has %d", *web.Spec.Replicas, *d.Spec.Replicas)
	}
	i, j := t.Server(d)
	container := d.Spec.Template.Spec.Containers[i]
	if container.Image != web.Spec.Image {
		t.Errorf("expected the image %s; but it is %s", web.Spec.Image, container.Image)
	}
	for _, v := range d.Spec.Template.Spec.Volumes {
		if v.Name == container.VolumeMounts[j].Name && (v.ConfigMap == nil || v.ConfigMap.Name != web.Name) {
			t.Errorf("the volume mounted at %s is %s, want the ConfigMap %s", suite.PageFolder, suite.JSON(v.VolumeSource),
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
	if port := s.Ports[0].TargetPort; port.IntValue() != 80 && !namesPort(t, c.Deployment, port.StrVal) {
		t.Errorf("the Service sends to port %s of its pods, want 80", port.String())
	}
}

// namesPort reports whether the server gives its port 80 this name.
func namesPort(t *suite.T, d *appsv1.Deployment, name string) bool {
	i, _ := t.Server(d)
	return slices.ContainsFunc(d.Spec.Template.Spec.Containers[i].Ports, func(p corev1.ContainerPort) bool {
		return p.Name == name && p.ContainerPort == 80
	})
}

func podsApart(t *suite.T) {
	two := suite.Sample()
	two.Replicas = new(int32(2))
	want := map[string]int{"web": 1, "web-web": 2}
	t.Create("web", suite.Sample())
	t.Create("web-web", two)
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
				return strings.HasPrefix(ownerName(t, p), c.Deployment.Name+"/")
			})
			if len(found) != number || len(strangers) > 0 {
				t.Errorf("expected that %s of %s finds its own %d pods; but by %q it finds %d pods, %d of them another's", what,
					name, number, selector, len(found), len(strangers))
			}
		}
	}
}

// ownerName is "Deployment/ReplicaSet" of a pod.
func ownerName(t *suite.T, p corev1.Pod) string {
	set := metav1.GetControllerOf(&p)
	if set == nil {
		return ""
	}
	rs, err := t.Fixture.Kube.AppsV1().ReplicaSets(t.Namespace).Get(t.Context(), set.Name, metav1.GetOptions{})
	t.Must(err, "read the ReplicaSet of a pod")
	if d := metav1.GetControllerOf(rs); d != nil {
		return d.Name + "/" + rs.Name
	}
	return ""
}

func statusReported(t *suite.T) {
	t.WantStatus()
	spec := suite.Sample()
	spec.Replicas = new(int32(2))
	web := t.Serve("web", spec)
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
	if web.Status.ReadyReplicas != 2 {
		t.Errorf("expected status.readyReplicas 2; but it is %d", web.Status.ReadyReplicas)
	}
	if have := portOf(t.Children(web).Service); web.Status.NodePort == nil || *web.Status.NodePort != have {
		t.Errorf("expected status.nodePort %d, that of the Service; but it is %s", have, suite.JSON(web.Status.NodePort))
	}
}

func portOf(s *corev1.Service) int32 {
	if len(s.Spec.Ports) == 0 {
		return 0
	}
	return s.Spec.Ports[0].NodePort
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
		spec := suite.Sample()
		spec.PageContentHTML, spec.Replicas = &page, new(int32(0))
		t.Create(name, spec)
	}
	for name, page := range pages {
		data := t.Children(t.Completed(name)).ConfigMap.Data
		if have, there := data["index.html"]; !there || have != page {
			t.Errorf("page %s: index.html is %s, want %s", name, short(have), short(page))
		}
	}
}

func short(text string) string {
	if len(text) > 60 {
		return fmt.Sprintf("%q… (%d bytes)", text[:60], len(text))
	}
	return fmt.Sprintf("%q", text)
}
