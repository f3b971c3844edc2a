package checks

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"

	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

// An edit is a user's change of a field that every operator must own, because the MyWeb sets it or the children do not
// work without it.
type edit struct {
	// id names the edit in the names of checks of behaviours; an edit without it belongs to a fault alone. title is
	// the field.
	id, title string
	// resource is that of the edited child.
	resource string
	// operations are the change. In a path, CONTAINER is the container with the page, and MOUNT its mount of the page;
	// the value anyPort is a free node port.
	operations []operation
}

// An operation is an operation of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

const (
	anyPort   = "any port"
	container = "/spec/template/spec/containers/CONTAINER"
)

// pageFolder is where the page is mounted, by contract.
const pageFolder = "/usr/share/nginx/html"

// edits are the edits of all kinds of children.
var edits = []edit{
	{"page", "the page", suite.ConfigMaps, []operation{{"replace", "/data/index.html", "vandalism"}}},
	{"page-removed", "a removed page", suite.ConfigMaps, []operation{{"remove", "/data/index.html", nil}}},
	{"image", "the image", suite.Deployments, []operation{{"replace", container + "/image", "example.com/other"}}},
	{"replicas", "the replica count", suite.Deployments, []operation{{"replace", "/spec/replicas", 4}}},
	{"mount", "the mount of the page", suite.Deployments,
		[]operation{{"replace", container + "/volumeMounts/MOUNT/mountPath", "/elsewhere"}}},
	{"port", "the Service's port", suite.Services, []operation{{"replace", "/spec/ports/0/port", 8080}}},
	{"node-port", "a node port that was asked for", suite.Services,
		[]operation{{"replace", "/spec/ports/0/nodePort", anyPort}}},
	{"service-type", "the Service's type", suite.Services,
		[]operation{{"replace", "/spec/type", "ClusterIP"}, {"remove", "/spec/ports/0/nodePort", nil}}},
	{"selector", "the Service's selector", suite.Services,
		[]operation{{"replace", "/spec/selector/app.kubernetes.io~1instance", "other"}}},
	{"", "the container's port", suite.Deployments,
		[]operation{{"replace", container + "/ports/0/containerPort", 8080}}},
	{"", "the protocol of the container's port", suite.Deployments,
		[]operation{{"replace", container + "/ports/0/protocol", "UDP"}}},
	{"", "the protocol of the Service's port", suite.Services,
		[]operation{{"replace", "/spec/ports/0/protocol", "UDP"}}},
	{"", "the whole selector", suite.Services,
		[]operation{{"replace", "/spec/selector", map[string]string{"app": "vandal"}}}},
}

// apply edits a child of a MyWeb.
func (e edit) apply(t *suite.T, name string, c *suite.Children) {
	var operations []operation
	for _, o := range e.operations {
		if e.resource == suite.Deployments {
			i, j := server(t, c.Deployment)
			o.Path = strings.NewReplacer("CONTAINER", fmt.Sprint(i), "MOUNT", fmt.Sprint(j)).Replace(o.Path)
		}
		if o.Value == anyPort {
			o.Value = t.NodePort()
		}
		operations = append(operations, o)
	}
	t.EditBy(e.resource, name, operations)
}

// server finds the container that has the page, and the index of its mount. Without one it ends the check.
func server(t *suite.T, d *appsv1.Deployment) (container, mount int) {
	for i, c := range d.Spec.Template.Spec.Containers {
		for j, m := range c.VolumeMounts {
			if m.MountPath == pageFolder {
				return i, j
			}
		}
	}
	t.Fatalf("expected the page at %s; but no container of the Deployment mounts anything there", pageFolder)
	return -1, -1
}

// imageOf is the image of the container with the page.
func imageOf(t *suite.T, d *appsv1.Deployment) string {
	i, _ := server(t, d)
	return d.Spec.Template.Spec.Containers[i].Image
}
