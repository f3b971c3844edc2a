package examine

import (
	"bytes"
	"cmp"
	"io/fs"
	"iter"
	"net/url"
	"os"
	"path/filepath"
	"slices"

	"go.yaml.in/yaml/v3"
)

// placeOf is the file and the line of a field: in the sample, or where the sample does not set the field, in the CRD.
func (t *target) placeOf(field []string) (file string, line int) {
	kind := t.sample.GetKind()
	if line := lineOf(t.Sample, []string{"kind"}, kind, field); line > 0 {
		return t.Sample, line
	}
	path := []string{"spec", "versions", t.gvr.Version, "schema", "openAPIV3Schema"}
	for _, name := range field {
		path = append(path, "properties", name)
	}
	_ = filepath.WalkDir(cmp.Or(t.CRD, t.Manifest), func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil
		}
		if line = lineOf(name, []string{"spec", "names", "kind"}, kind, path); line > 0 {
			file = name
			return fs.SkipAll
		}
		return nil
	})
	return file, line
}

// documentsOf are the YAML documents of a file, up to the first one that cannot be read.
func documentsOf(file string) iter.Seq[*yaml.Node] {
	return func(yield func(*yaml.Node) bool) {
		data, err := os.ReadFile(file)
		if err != nil {
			return
		}
		for documents := yaml.NewDecoder(bytes.NewReader(data)); ; {
			var document yaml.Node
			if documents.Decode(&document) != nil || len(document.Content) == 0 || !yield(document.Content[0]) {
				return
			}
		}
	}
}

// lineOf is the line of a path in that YAML document of a file which has a value at another path; 0 when there is none.
func lineOf(file string, at []string, value string, path []string) int {
	for document := range documentsOf(file) {
		if _, found := follow(document, at); found == nil || found.Value != value {
			continue
		}
		line, _ := follow(document, path)
		return line
	}
	return 0
}

// follow is the line and the value of a path in YAML. A name is the key of a map, or the name of an item of a list.
func follow(node *yaml.Node, path []string) (line int, found *yaml.Node) {
	if len(path) == 0 {
		return node.Line, node
	}
	for n, item := range node.Content {
		switch {
		case node.Kind == yaml.MappingNode && n%2 == 0 && item.Value == path[0]:
			line, found = follow(node.Content[n+1], path[1:])
			if found != nil && len(path) == 1 {
				line = item.Line
			}
			return line, found
		case node.Kind == yaml.SequenceNode:
			if _, name := follow(item, []string{"name"}); name != nil && name.Value == path[0] {
				return follow(item, path[1:])
			}
		}
	}
	return 0, nil
}

// placeOfRule is the file and the line of the rule that grants a permission: in ROLE=, or in a role that MANIFEST= binds.
// Without such a rule, it is the first file of ROLE=.
func (t *target) placeOfRule(p permission) (file string, line int) {
	grants, _ := t.workload.grants()
	for _, root := range append(slices.Clone(t.Role), t.Manifest) {
		isBound := func(role string) bool {
			return root != t.Manifest || slices.ContainsFunc(grants, func(g grant) bool { return g.name == role })
		}
		_ = filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && line == 0 {
				file, line = name, lineOfRule(name, p, isBound)
			}
			return nil
		})
		if line > 0 {
			return file, line
		}
	}
	return slices.Concat(t.Role, []string{""})[0], 0
}

// lineOfRule is the line of the rule with a permission in the wanted roles of a file; 0 when there is none.
func lineOfRule(file string, p permission, isWanted func(role string) bool) int {
	for document := range documentsOf(file) {
		_, name := follow(document, []string{"metadata", "name"})
		_, rules := follow(document, []string{"rules"})
		if name == nil || rules == nil || !isWanted(name.Value) {
			continue
		}
		for _, node := range rules.Content {
			var rule struct {
				Groups           []string `yaml:"apiGroups"`
				Resources, Verbs []string
			}
			if node.Decode(&rule) == nil && slices.Contains(rule.Groups, p.Group) &&
				slices.Contains(rule.Resources, p.Resource) && slices.Contains(rule.Verbs, p.Verb) {
				return node.Line
			}
		}
	}
	return 0
}

// inRepository is a path as a URI relative to the root of its repository, as readers of SARIF want it.
func inRepository(file string) string {
	if absolute, err := filepath.Abs(file); err == nil {
		if inside, err := filepath.Rel(Repository(file), absolute); err == nil {
			file = inside
		}
	}
	return (&url.URL{Path: filepath.ToSlash(file)}).String()
}
