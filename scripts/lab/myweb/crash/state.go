package crash

import (
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/operator-workshop/scripts/examine/state"
	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

// name is the name of the MyWeb in every experiment; each experiment has a separate namespace.
const name = "web"

// masked matches the paths that always differ between two runs.
var masked = regexp.MustCompile(
	`\.(uid|resourceVersion|namespace|managedFields|clusterIPs?|creationTimestamp|last\w+Time)\b`).MatchString

// observe reads the end state of the fixture: the MyWeb and its children. It masks the UID of the MyWeb everywhere,
// and its namespace.
func observe(t *suite.T) (state.State, error) {
	s, uid := state.State{}, ""
	for _, resource := range append(slices.Clone(suite.Kinds), suite.Resource) {
		o, err := t.Objects(resource).Get(t.Ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		s.Add(suite.GVR(resource).Resource, o.Object, masked)
		uid = string(o.GetUID()) // the last one is the MyWeb
	}
	for path, value := range s {
		s[path] = strings.NewReplacer(uid, "UID", t.Namespace, "NAMESPACE").Replace(value)
	}
	return s, nil
}
