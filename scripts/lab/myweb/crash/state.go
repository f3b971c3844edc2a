package crash

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"example.com/operator-workshop/scripts/lab/myweb"
	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

// name of the MyWeb in every experiment, each of which has its own namespace.
const name = "web"

var (
	configMaps  = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	services    = schema.GroupVersionResource{Version: "v1", Resource: "services"}
	children    = []schema.GroupVersionResource{configMaps, deployments, services}
)

// A state is what the fixture looks like in the end: a value for each path of the MyWeb and its children.
type state map[string]string

// masked are the paths that differ between any two runs by their nature.
var masked = regexp.MustCompile(
	`\.(uid|resourceVersion|namespace|managedFields|clusterIPs?|creationTimestamp|last\w+Time)\b`)

// observe reads the state. The UID of the MyWeb is masked wherever it stands, and so is its namespace.
func observe(t *suite.T) (state, error) {
	s := state{}
	for _, resource := range append(slices.Clone(children), myweb.MyWebs) {
		o, err := t.Fixture.Dynamic.Resource(resource).Namespace(t.Namespace).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		s.add(resource.Resource, o.Object)
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

// add notes the values at and below a path. Items of a list are known by their type or name, if they have one.
func (s state) add(path string, value any) {
	if masked.MatchString(path) {
		return
	}
	switch v := value.(type) {
	case map[string]any:
		for key, item := range v {
			s.add(path+"."+key, item)
		}
	case []any:
		for i, item := range v {
			key := fmt.Sprint(i)
			if fields, ok := item.(map[string]any); ok {
				key = cmp.Or(text(fields["type"]), text(fields["name"]), key)
			}
			s.add(path+"["+key+"]", item)
		}
	default:
		s[path] = fmt.Sprint(v)
	}
}

func text(value any) string {
	s, _ := value.(string)
	return s
}

// common keeps what is equal in all states: what differs between undisturbed runs says nothing.
func common(states []state) (equal state, varying map[string]bool) {
	equal, varying = maps.Clone(states[0]), map[string]bool{}
	for _, s := range states[1:] {
		for path := range equal {
			if _, there := s[path]; !there || s[path] != equal[path] {
				varying[path] = true
			}
		}
		for path := range s {
			if _, there := equal[path]; !there {
				varying[path] = true
			}
		}
	}
	maps.DeleteFunc(equal, func(path, _ string) bool { return varying[path] })
	return equal, varying
}

// differences says where a state is not as the undisturbed one.
func differences(got, want state, varying map[string]bool) (lines []string) {
	for path, value := range want {
		if have, there := got[path]; !there {
			lines = append(lines, fmt.Sprintf("%s is missing, undisturbed it is %s", path, value))
		} else if have != value {
			lines = append(lines, fmt.Sprintf("%s is %s, undisturbed it is %s", path, have, value))
		}
	}
	for path, value := range got {
		if _, there := want[path]; !there && !varying[path] {
			lines = append(lines, fmt.Sprintf("%s is %s, undisturbed it is not there", path, value))
		}
	}
	slices.Sort(lines)
	return lines
}
