package suite

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"example.com/operator-workshop/scripts/examine/ledger"
	"example.com/operator-workshop/scripts/examine/state"
)

// A field changes while the operator writes its object again and again. by are its field managers.
type field struct {
	path string
	by   []string
	// comesAndGoes means that some versions of the object lack the field.
	comesAndGoes bool
}

// isOfCluster reports whether a controller of the cluster writes the field.
func (f field) isOfCluster() bool { return len(f.by) > 0 && strings.HasPrefix(f.by[0], "kube-") }

// isPutBack reports whether a controller of the cluster alone writes the field again and again, because the operator removes
// it. An update cannot remove a field of the status.
func (f field) isPutBack() bool {
	return f.comesAndGoes && f.isOfCluster() && len(f.by) == 1 && !strings.HasPrefix(f.path, "status.")
}

func (f field) String() string {
	if len(f.by) == 0 {
		return f.path
	}
	return f.path + " (written by " + strings.Join(f.by, " and ") + ")"
}

// listed describes the first of some fields.
func listed(fields []field) string {
	var lines []string
	for _, f := range fields[:min(len(fields), 3)] {
		lines = append(lines, f.String())
	}
	return strings.Join(lines, ", ")
}

// varying returns the fields of an object that change while the operator writes it again and again.
func (t *T) varying(e ledger.Entry) (fields []field) {
	ctx, cancel := context.WithTimeout(t.Ctx, 3*time.Second)
	defer cancel()
	resource, _, _ := strings.Cut(e.FullResource(), "/")
	w, err := t.Objects(resource).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + e.Name})
	if err != nil {
		return nil
	}
	defer w.Stop()
	const versions = 6
	var states []state.State
	managers := map[string][]string{}
	for event := range w.ResultChan() {
		u, ok := event.Object.(*unstructured.Unstructured)
		if !ok {
			break
		}
		managed(managers, u.GetManagedFields())
		for _, field := range []string{"managedFields", "resourceVersion", "generation"} {
			unstructured.RemoveNestedField(u.Object, "metadata", field)
		}
		s := state.State{}
		s.Add("", u.Object, nil)
		if states = append(states, s); len(states) == versions {
			break
		}
	}
	_, varying := state.Common(states)
	for _, path := range slices.Sorted(maps.Keys(varying)) {
		lacks := func(s state.State) bool { _, has := s[path]; return !has }
		fields = append(fields, field{strings.TrimPrefix(path, "."), managers[path], slices.ContainsFunc(states, lacks)})
	}
	slices.SortStableFunc(fields, func(a, b field) int { // a field of the cluster's controllers often follows from another
		if a.isOfCluster() == b.isOfCluster() {
			return 0
		}
		return map[bool]int{true: 1, false: -1}[a.isOfCluster()]
	})
	return fields
}

// keyed matches the key of an item of a list, in a path of managed fields.
var keyed = regexp.MustCompile(`\[(?:type|name)="([^"]*)"\]`)

// managed adds the managers of the fields of an object, by the path that state.State gives the field.
func managed(by map[string][]string, entries []metav1.ManagedFieldsEntry) {
	for _, m := range entries {
		set := &fieldpath.Set{}
		if m.FieldsV1 == nil || set.FromJSON(m.FieldsV1.GetRawReader()) != nil {
			continue
		}
		set.Iterate(func(p fieldpath.Path) {
			path := keyed.ReplaceAllString(p.String(), "[$1]")
			if !slices.Contains(by[path], m.Manager) {
				by[path] = append(by[path], m.Manager)
			}
		})
	}
}
