package suite

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
)

// An Edit is a user's change of a field that every operator must own, because the MyWeb sets it or the children do not
// work without it.
type Edit struct {
	// ID names the edit in the names of checks; Title is the field.
	ID, Title string
	// Resource is that of the edited child.
	Resource string
	// Operations are the change. In a path, CONTAINER is the container with the page, and MOUNT its mount of the page;
	// the value anyPort is a free node port.
	Operations []Operation
	// Value returns what must be the same before and after.
	Value func(t *T, c *Children) any
}

const (
	anyPort   = "any port"
	container = "/spec/template/spec/containers/CONTAINER"
)

// PageFolder is where the page is mounted, by contract.
const PageFolder = "/usr/share/nginx/html"

// Edits are the edits of all kinds of children.
var Edits = []Edit{
	{"page", "the page", ConfigMaps, []Operation{{"replace", "/data/index.html", "vandalism"}}, page},
	{"page-removed", "a removed page", ConfigMaps, []Operation{{"remove", "/data/index.html", nil}}, page},
	{"image", "the image", Deployments, []Operation{{"replace", container + "/image", "example.com/other"}},
		func(t *T, c *Children) any { return t.Image(c.Deployment) }},
	{"replicas", "the replica count", Deployments, []Operation{{"replace", "/spec/replicas", 4}},
		func(_ *T, c *Children) any { return *c.Deployment.Spec.Replicas }},
	{"mount", "the mount of the page", Deployments,
		[]Operation{{"replace", container + "/volumeMounts/MOUNT/mountPath", "/elsewhere"}},
		func(_ *T, c *Children) any {
			i, j := server(c.Deployment)
			if i < 0 {
				return "nothing is mounted at " + PageFolder
			}
			return c.Deployment.Spec.Template.Spec.Containers[i].VolumeMounts[j].Name
		}},
	{"port", "the Service's port", Services, []Operation{{"replace", "/spec/ports/0/port", 8080}}, ports},
	{"node-port", "a node port that was asked for", Services,
		[]Operation{{"replace", "/spec/ports/0/nodePort", anyPort}}, ports},
	{"service-type", "the Service's type", Services,
		[]Operation{{"replace", "/spec/type", "ClusterIP"}, {"remove", "/spec/ports/0/nodePort", nil}},
		func(_ *T, c *Children) any { return []any{c.Service.Spec.Type, c.Service.Spec.Ports} }},
	{"selector", "the Service's selector", Services,
		[]Operation{{"replace", "/spec/selector/app.kubernetes.io~1instance", "other"}},
		func(_ *T, c *Children) any { return c.Service.Spec.Selector }},
}

func page(_ *T, c *Children) any  { return c.ConfigMap.Data["index.html"] }
func ports(_ *T, c *Children) any { return c.Service.Spec.Ports }

// EditAs makes an edit of a child of a MyWeb.
func (t *T) EditAs(e Edit, name string, c *Children) {
	var operations []Operation
	for _, o := range e.Operations {
		if e.Resource == Deployments {
			i, j := t.Server(c.Deployment)
			o.Path = strings.NewReplacer("CONTAINER", fmt.Sprint(i), "MOUNT", fmt.Sprint(j)).Replace(o.Path)
		}
		if o.Value == anyPort {
			o.Value = t.NodePort()
		}
		operations = append(operations, o)
	}
	t.EditBy(e.Resource, name, operations...)
}

// Server finds the container that has the page, and the index of its mount. Without one it ends the check.
func (t *T) Server(d *appsv1.Deployment) (container, mount int) {
	i, j := server(d)
	if i < 0 {
		t.Fatalf("expected the page at %s; but no container of the Deployment mounts anything there", PageFolder)
	}
	return i, j
}

func server(d *appsv1.Deployment) (container, mount int) {
	for i, c := range d.Spec.Template.Spec.Containers {
		for j, m := range c.VolumeMounts {
			if m.MountPath == PageFolder {
				return i, j
			}
		}
	}
	return -1, -1
}

// Image is the image of the container with the page.
func (t *T) Image(d *appsv1.Deployment) string {
	i, _ := t.Server(d)
	return d.Spec.Template.Spec.Containers[i].Image
}
