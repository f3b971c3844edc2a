package crash

import (
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"example.com/operator-workshop/scripts/lab/engine/state"
	"example.com/operator-workshop/scripts/lab/myweb"
	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

// name is the name of the MyWeb in every experiment; each experiment has a separate namespace.
const name = "web"

var (
	configMaps  = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	services    = schema.GroupVersionResource{Version: "v1", Resource: "services"}
	children    = []schema.GroupVersionResource{configMaps, deployments, services}
)

// masked matches the paths that always differ between two runs.
var masked = regexp.MustCompile(
	`\.(uid|resourceVersion|namespace|managedFields|clusterIPs?|creationTimestamp|last\w+Time)\b`)

// observe reads the end state of the fixture: the MyWeb and its children. It masks the UID of the MyWeb everywhere,
// and its namespace.
func observe(t *suite.T) (state.State, error) {
	s := state.State{}
	for _, resource := range append(slices.Clone(children), myweb.MyWebs) {
		o, err := t.Fixture.Dynamic.Resource(resource).Namespace(t.Namespace).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		s.Add(resource.Resource, o.Object, masked)
	}
	web, err := t.Get(name)
	if err != nil {
		return nil, err
	}
	for path, value := range s {
		s[path] = strings.NewReplacer(string(web.UID), "UID", t.Namespace, "NAMESPACE").Replace(value)
	}
	return s, nil
}
