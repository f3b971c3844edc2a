package examine

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"example.com/operator-workshop/scripts/examine/ledger"
	"example.com/operator-workshop/scripts/examine/proxy"
	"example.com/operator-workshop/scripts/examine/wire"
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

// controlPlane lists the field managers that are not operators.
var controlPlane = []string{"kube-controller-manager", "kube-scheduler", "kwok", "kwok-controller", "kubelet",
	"kube-apiserver", somebody}

// A fieldOf is a field of a child.
type fieldOf struct {
	child child
	path  string
}

// learnValues notes which fields of a child have a different value than in the run before: the lab neither compares
// nor changes values that the operator generates, such as a password.
func (t *trial) learnValues(c child) error {
	u, err := t.at(c).Get(t.Ctx, c.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	for _, p := range t.fields[c] {
		_, value, _ := p.find(u.Object)
		if p.String() == ".metadata.ownerReferences" {
			continue // it has the sample's UID
		}
		k := fieldOf{c, p.String()}
		if c.isSecret() && p[0].field == "data" {
			value = t.anywhere(value)
		}
		now := strings.ReplaceAll(text(value), t.Namespace, "NAMESPACE")
		if before, known := t.values[k]; known && before != now {
			t.generated[k] = true
		}
		t.values[k] = now
	}
	return nil
}

// sent is the object that the operator sent to create a child; nil when the lab does not have it.
func (t *trial) sent(c child) map[string]any {
	for _, s := range t.creations {
		if s.namespace == t.Namespace && s.what == ledgerName(c) && s.name == c.Name {
			return s.object
		}
	}
	return nil
}

// A made is the body of a request that created an object, without the defaults that the API server adds.
type made struct {
	what, namespace, name string
	object                map[string]any
}

// keepCreations records the bodies of the operator's requests that create objects, from now on.
func (r *run) keepCreations() *proxy.Fault {
	return r.fixture.Proxy.Add(proxy.Rule{Name: "read creations", Moment: proxy.After, Match: ledger.Match{
		Users: []string{r.operator.user.Name}, Verbs: []string{wire.Create, wire.Apply},
		Where: func(e ledger.Entry) bool { return e.Creates() && slices.Contains(e.Served, http.StatusCreated) }},
		Do: proxy.Call(func(x *proxy.Exchange) proxy.Action {
			e := x.Entry()
			if object := decoded(x.RequestBody()); object != nil {
				r.creationsMu.Lock()
				defer r.creationsMu.Unlock()
				r.creations = append(r.creations, made{e.FullResource(), e.Namespace, e.Name, object})
			}
			return proxy.Action{}
		})})
}

// decoded decodes an object from JSON, YAML or protobuf; nil when it is in none of them. Of these, protobuf alone needs
// the Go type of the object, which has fields that the operator did not send: see unsent.
func decoded(body []byte) map[string]any {
	var fields map[string]any
	if yaml.Unmarshal(body, &fields) == nil {
		return fields
	}
	object, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	if err != nil {
		return nil
	}
	if fields, err = runtime.DefaultUnstructuredConverter.ToUnstructured(object); err != nil {
		return nil
	}
	unsent(fields)
	return fields
}

// unsent removes the fields that a Go type has even when they are not set. In other places an empty map has a meaning.
func unsent(value any) {
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			empty, isMap := inner.(map[string]any)
			switch {
			case key == "targetPort" && fmt.Sprint(inner) == "0", inner == nil,
				isMap && len(empty) == 0 && slices.Contains([]string{"resources", "strategy", "updateStrategy"}, key):
				delete(v, key)
			default:
				unsent(inner)
			}
		}
	case []any:
		for _, inner := range v {
			unsent(inner)
		}
	}
}

// discoverFields returns the paths of a child that the operator owns by the managed fields, and that it sent.
func (t *trial) discoverFields(c child) (paths []path, err error) {
	u, err := t.at(c).Get(t.Ctx, c.Name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	t.creationsMu.Lock()
	sent := t.sent(c)
	t.creationsMu.Unlock()
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
			if sent != nil && !p.isIn(sent) {
				continue // a default of the API server
			}
			paths = append(paths, p)
		}
	}
	slices.SortFunc(paths, func(a, b path) int { return strings.Compare(a.String(), b.String()) })
	return paths, nil
}

// leaves are the ends of a tree of managed fields. Owner references count as one end, because the lab strips them as
// a whole.
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

// isIn reports whether an object that the operator sent has a path. The API server may have added keys of list items
// to the path, such as the protocol of a port.
func (p path) isIn(object any) bool {
	for at, e := range p {
		if e.field != "" {
			fields, _ := object.(map[string]any)
			inner, ok := fields[e.field]
			if !ok {
				return false
			}
			object = inner
			continue
		}
		list, _ := object.([]any)
		return slices.ContainsFunc(list, func(item any) bool {
			fields, _ := item.(map[string]any)
			for key, value := range e.keys {
				if sent, ok := fields[key]; ok && fmt.Sprint(sent) != fmt.Sprint(value) {
					return false
				}
			}
			return p[at+1:].isIn(item)
		})
	}
	return true
}

// find resolves a path in an object: it returns a JSON pointer, and the value there.
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

// means reports whether an item of a list has the keys of the element.
func (e element) means(item any) bool {
	fields, _ := item.(map[string]any)
	for key, value := range e.keys {
		if fmt.Sprint(fields[key]) != fmt.Sprint(value) {
			return false
		}
	}
	return true
}

// others are values that can replace a value, the most harmless first.
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

// spread picks n fields from all parts of a list.
func spread(fields []path, n int) (some []path) {
	if len(fields) <= n {
		return fields
	}
	for i := range n {
		some = append(some, fields[i*len(fields)/n])
	}
	return some
}
