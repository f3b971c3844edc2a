package examine

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An element of a path into an object: a field, or an item of a list by its keys.
type element struct {
	field string
	keys  map[string]any
}

// A path leads to a field that the operator sets.
type path []element

func (p path) String() (text string) {
	for _, e := range p {
		if e.field != "" {
			text += "." + e.field
		} else {
			data, _ := json.Marshal(e.keys)
			text += "[" + string(data) + "]"
		}
	}
	return text
}

// controlPlane are the field managers that are no operator.
var controlPlane = []string{"kube-controller-manager", "kube-scheduler", "kwok", "kwok-controller", "kubelet",
	"kube-apiserver", somebody}

// discoverFields are the paths of a child that the operator owns by the managed fields.
func (t *trial) discoverFields(c child) (paths []path, err error) {
	u, err := t.at(c).Get(t.ctx, c.Name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	for _, m := range u.GetManagedFields() {
		if m.Subresource != "" || m.FieldsV1 == nil || slices.Contains(controlPlane, m.Manager) {
			continue
		}
		var fields map[string]any
		if err := json.Unmarshal(m.FieldsV1.GetRawBytes(), &fields); err != nil {
			return nil, fmt.Errorf("read the managed fields of %s: %w", c, err)
		}
		for _, p := range leaves(fields, nil) {
			if p[0].field == "status" || slices.ContainsFunc(paths,
				func(have path) bool { return have.String() == p.String() }) {
				continue
			}
			paths = append(paths, p)
		}
	}
	slices.SortFunc(paths, func(a, b path) int { return strings.Compare(a.String(), b.String()) })
	return paths, nil
}

// leaves are the ends of a tree of managed fields. Owner references are one end: they are stripped as a whole.
func leaves(fields map[string]any, at path) (all []path) {
	inner := 0
	for name, sub := range fields {
		kind, rest, _ := strings.Cut(name, ":")
		e := element{}
		switch kind {
		case "f":
			e.field = rest
		case "k":
			if json.Unmarshal([]byte(rest), &e.keys) != nil {
				continue
			}
		default: // "." and the values of sets
			continue
		}
		inner++
		below := append(slices.Clone(at), e)
		if below.String() == ".metadata.ownerReferences" {
			all = append(all, below)
			continue
		}
		tree, _ := sub.(map[string]any)
		all = append(all, leaves(tree, below)...)
	}
	if inner == 0 && len(at) > 0 {
		return []path{at}
	}
	return all
}

// find resolves a path in an object: a JSON pointer, and the value there.
func (p path) find(object any) (pointer string, value any, ok bool) {
	for _, e := range p {
		if e.field != "" {
			fields, _ := object.(map[string]any)
			if object, ok = fields[e.field]; !ok {
				return "", nil, false
			}
			pointer += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(e.field)
			continue
		}
		list, _ := object.([]any)
		i := slices.IndexFunc(list, func(item any) bool { return e.means(item) })
		if i < 0 {
			return "", nil, false
		}
		pointer += fmt.Sprint("/", i)
		object = list[i]
	}
	return pointer, object, true
}

// means reports whether an item of a list has the keys.
func (e element) means(item any) bool {
	fields, _ := item.(map[string]any)
	for key, value := range e.keys {
		if fmt.Sprint(fields[key]) != fmt.Sprint(value) {
			return false
		}
	}
	return true
}

// others are values to put in the place of one, the most harmless first.
func others(value any) (all []any) {
	switch v := value.(type) {
	case string:
		for _, other := range []string{v + "-drift", "drift", "Always", "IfNotPresent", "UDP", "ClusterIP", "NodePort",
			"Unconfined", "Recreate", "/drift", "1"} {
			if other != v {
				all = append(all, other)
			}
		}
	case int64:
		all = []any{v + 1, v - 1, int64(1), int64(0)}
	case float64:
		all = []any{v + 1, v - 1}
	case bool:
		all = []any{!v}
	}
	return all
}

// spread are n fields from all over a list.
func spread(fields []path, n int) (some []path) {
	if len(fields) <= n {
		return fields
	}
	for i := range n {
		some = append(some, fields[i*len(fields)/n])
	}
	return some
}
