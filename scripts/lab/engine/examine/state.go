package examine

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A state is a value for each path of the sample and its children.
type state map[string]string

// masked are the paths that differ in every life of an object.
var masked = regexp.MustCompile(`\.(uid|resourceVersion|namespace|managedFields|clusterIPs?|creationTimestamp|` +
	`generation|observedGeneration|last\w+Time|nodePort|healthCheckNodePort)\b|` +
	`\.ownerReferences\[\d+\]\.uid|deployment\.kubernetes\.io/revision`)

// observe reads the state. The status of the children is left out: controllers of the cluster write it.
func (t *trial) observe() (state, error) {
	all, uids := state{}, []string{}
	own := child{GVR: t.target.gvr, Name: t.target.sample.GetName()}
	for _, c := range append(slices.Clone(t.children), own) {
		u, err := t.at(c).Get(t.ctx, c.Name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		uids = append(uids, string(u.GetUID()), "UID")
		if c != own {
			delete(u.Object, "status")
		}
		flatten(all, c.String(), u.Object)
	}
	names := strings.NewReplacer(append(uids, t.namespace, "NAMESPACE")...)
	for path, value := range all {
		all[path] = names.Replace(value)
	}
	return all, nil
}

// flatten adds the value at a path, field by field. Items of a list are called by their name or type.
func flatten(all state, path string, value any) {
	if masked.MatchString(path) {
		return
	}
	switch v := value.(type) {
	case map[string]any:
		for key, item := range v {
			flatten(all, path+"."+key, item)
		}
	case []any:
		for i, item := range v {
			flatten(all, path+"["+itemName(i, item)+"]", item)
		}
	default:
		all[path] = fmt.Sprint(v)
	}
}

func itemName(i int, item any) string {
	fields, _ := item.(map[string]any)
	for _, key := range []string{"type", "name"} {
		if name, _, _ := unstructured.NestedString(fields, key); name != "" {
			return name
		}
	}
	return fmt.Sprint(i)
}

// common is what is equal in all states, and the paths that are not: what varies by itself shows nothing.
func common(states []state) (equal state, varying map[string]bool) {
	equal, varying = state{}, map[string]bool{}
	for _, s := range states {
		for path, value := range s {
			equal[path] = value
		}
	}
	for path, value := range equal {
		for _, s := range states {
			if have, ok := s[path]; !ok || have != value {
				varying[path] = true
			}
		}
	}
	for path := range varying {
		delete(equal, path)
	}
	return equal, varying
}

// differences are lines about what is not as in an undisturbed run.
func differences(got, want state, varying map[string]bool) (lines []string) {
	for path, value := range want {
		if have, ok := got[path]; !ok {
			lines = append(lines, fmt.Sprintf("%s is missing; undisturbed it is %q", path, value))
		} else if have != value {
			lines = append(lines, fmt.Sprintf("%s is %q; undisturbed it is %q", path, have, value))
		}
	}
	for path, value := range got {
		if _, ok := want[path]; !ok && !varying[path] {
			lines = append(lines, fmt.Sprintf("%s is %q; undisturbed it does not exist", path, value))
		}
	}
	slices.Sort(lines)
	if len(lines) > 10 {
		lines = append(lines[:10], fmt.Sprintf("… %d more", len(lines)-10))
	}
	return lines
}

// A differenceError says how an end differs from the undisturbed one.
type differenceError []string

func (d differenceError) Error() string { return strings.Join(d, "\n") }

// asUndisturbed returns nil when the state is that of an undisturbed run.
func (t *trial) asUndisturbed() error {
	got, err := t.observe()
	if err != nil {
		return err
	}
	if lines := differences(got, t.state, t.varying); len(lines) > 0 {
		return differenceError(lines)
	}
	return nil
}
