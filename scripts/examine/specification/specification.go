// Package specification describes an operator that is still to be written: a kind with its fields, the children of a
// resource, the fields that reach each child, and the conditions. The lab makes checks from it.
package specification

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"example.com/operator-workshop/scripts/examine/strictyaml"
)

// File is the name of a specification beside the program that it is about.
const File = "specification.yaml"

// Version is the version of each specified kind.
const Version = "v1"

// Example is a specification for messages and documentation.
const Example = `kind: Greeting
group: example.com
fields:
- {name: message, type: string, default: Hello, maxLength: 40, reaches: [ConfigMap]}
- {name: replicas, type: integer, default: 1, minimum: 1, maximum: 3, reaches: [Deployment]}
children: [ConfigMap, Deployment]
conditions: [Ready]
`

// A Specification is the plan of an operator.
type Specification struct {
	Kind  string `json:"kind"`
	Group string `json:"group"`
	// Fields are fields of spec. Children are kinds of KnownChildren. Each condition must become True.
	Fields     []Field  `json:"fields"`
	Children   []string `json:"children"`
	Conditions []string `json:"conditions,omitempty"`
}

// A Field is a field of spec. Default and limits are those of the CRD's schema; a field without a default is required.
type Field struct {
	Name      string   `json:"name"`
	Type      string   `json:"type"`
	Default   any      `json:"default,omitempty"`
	Minimum   *int64   `json:"minimum,omitempty"`
	Maximum   *int64   `json:"maximum,omitempty"`
	MaxLength *int64   `json:"maxLength,omitempty"`
	Enum      []string `json:"enum,omitempty"`
	// Reaches are the children that have the value.
	Reaches []string `json:"reaches"`
}

// Types are the types of fields.
var Types = []string{"string", "integer", "boolean"}

// KnownChildren are the kinds of children, in the order in which a list shows them.
var KnownChildren = []string{"ConfigMap", "Secret", "Service", "Deployment", "StatefulSet", "CronJob", "Ingress"}

// A Resource is a resource of the Kubernetes API.
type Resource struct{ Group, Version, Name string }

var resources = map[string]Resource{
	"ConfigMap":   {"", "v1", "configmaps"},
	"Secret":      {"", "v1", "secrets"},
	"Service":     {"", "v1", "services"},
	"Deployment":  {"apps", "v1", "deployments"},
	"StatefulSet": {"apps", "v1", "statefulsets"},
	"CronJob":     {"batch", "v1", "cronjobs"},
	"Ingress":     {"networking.k8s.io", "v1", "ingresses"},
}

// ResourceOf is the resource of a kind of KnownChildren.
func ResourceOf(child string) Resource { return resources[child] }

// Read reads a specification. Each error names the field, the reason and the fix.
func Read(path string) (s Specification, err error) {
	if data, err := os.ReadFile(path); err == nil && len(bytes.TrimSpace(data)) == 0 {
		return s, fmt.Errorf("%s is empty: write a specification into it, such as this example:\n\n%s", path, Example)
	}
	if err := strictyaml.Read(path, &s); err != nil {
		return s, fmt.Errorf("%w: the fields of a specification are those of this example:\n\n%s", err, Example)
	}
	if err := s.Check(); err != nil {
		return s, fmt.Errorf("%s cannot be used:\n%w", path, err)
	}
	return s, nil
}

var (
	kindName      = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,40}$`)
	groupName     = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+$`)
	fieldName     = regexp.MustCompile(`^[a-z][A-Za-z0-9]{0,40}$`)
	reservedGroup = regexp.MustCompile(`(^|\.)(k8s|kubernetes)\.io$`)
)

// Check returns an error for each mistake.
func (s Specification) Check() error { return errors.Join(s.Mistakes()...) }

// Mistakes are the errors of Check. Each begins with the name of its field.
func (s Specification) Mistakes() (errs []error) {
	want := func(ok bool, field, why, fix string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf("%s: %s: %s", field, why, fmt.Sprintf(fix, args...)))
		}
	}
	want(kindName.MatchString(s.Kind), "kind", fmt.Sprintf("%q is not the name of a kind", s.Kind),
		"write one word with a capital letter, such as Greeting")
	want(!slices.Contains(KnownChildren, s.Kind), "kind", s.Kind+" is a kind of Kubernetes", "choose another name")
	want(groupName.MatchString(s.Group), "group", fmt.Sprintf("%q is not an API group", s.Group),
		"write a name with a dot, in lower case, such as example.com")
	want(!reservedGroup.MatchString(s.Group), "group", s.Group+" belongs to the Kubernetes project",
		"choose a name such as example.com")
	want(len(s.Fields) > 0, "fields", "a resource without a field asks for nothing", "add a field")
	want(len(s.Children) > 0, "children", "an operator without a child has nothing to write", "name some of %s",
		strings.Join(KnownChildren, ", "))
	for n, child := range s.Children {
		want(slices.Contains(KnownChildren, child), "children", fmt.Sprintf("%q is not a kind that the lab knows", child),
			"choose from %s", strings.Join(KnownChildren, ", "))
		want(!slices.Contains(s.Children[:n], child), "children", child+" is there twice", "name each kind once")
	}
	for _, condition := range s.Conditions {
		want(kindName.MatchString(condition), "conditions", fmt.Sprintf("%q is not the type of a condition", condition),
			"write one word with a capital letter, such as Ready")
	}
	for n, f := range s.Fields {
		at := fmt.Sprintf("fields[%d] (%s)", n, f.Name)
		twice := slices.ContainsFunc(s.Fields[:n], func(other Field) bool { return other.Name == f.Name })
		want(!twice, at, "the name is there twice", "give each field another name")
		errs = append(errs, f.check(at, s.Children)...)
	}
	return errs
}

// check returns the mistakes of a field.
func (f Field) check(at string, children []string) (errs []error) {
	want := func(ok bool, part, why, fix string) {
		if !ok {
			errs = append(errs, fmt.Errorf("%s: %s: %s: %s", at, part, why, fix))
		}
	}
	want(fieldName.MatchString(f.Name), "name", fmt.Sprintf("%q is not the name of a field", f.Name),
		"begin with a small letter, and use letters and digits, such as pageSize")
	if !slices.Contains(Types, f.Type) { // limits and a default cannot be judged without a type
		want(false, "type", fmt.Sprintf("%q is not a type that the lab knows", f.Type), "choose from "+strings.Join(Types, ", "))
		return errs
	}
	want(f.Type == "integer" || f.Minimum == nil && f.Maximum == nil, "minimum, maximum", "they limit integers",
		"remove them, or write type: integer")
	want(f.Type == "string" || f.MaxLength == nil && f.Enum == nil, "maxLength, enum", "they limit strings",
		"remove them, or write type: string")
	want(f.Minimum == nil || f.Maximum == nil || *f.Minimum < *f.Maximum, "minimum, maximum",
		"the check changes the field, and there is no other value", "write a maximum above the minimum")
	want(f.MaxLength == nil || *f.MaxLength > 1, "maxLength", "the check makes the value one character longer",
		"write 2 or more")
	want(len(f.Enum) != 1, "enum", "the check changes the field, and there is no other value", "list two values or more")
	why := f.unfit(f.Default)
	want(f.Default == nil || why == "", "default", why, "write a value that the type and the limits of the field allow")
	want(len(f.Reaches) > 0, "reaches", "an operator that ignores the field would pass", "name a child that has the value")
	for _, child := range f.Reaches {
		want(slices.Contains(children, child), "reaches", child+" is not in children", "add it there, or name another child")
	}
	return errs
}

// unfit is the reason why a value is not one of the field; empty when it is one.
func (f Field) unfit(value any) string {
	switch v := value.(type) {
	case string:
		switch {
		case f.Type != "string":
		case f.MaxLength != nil && int64(len(v)) > *f.MaxLength:
			return fmt.Sprintf("%q is longer than %d", v, *f.MaxLength)
		case f.Enum != nil && !slices.Contains(f.Enum, v):
			return fmt.Sprintf("%q is not in enum", v)
		default:
			return ""
		}
	case bool:
		if f.Type == "boolean" {
			return ""
		}
	case float64, int64:
		n, whole := integer(v)
		switch {
		case f.Type != "integer" || !whole:
		case f.Minimum != nil && n < *f.Minimum, f.Maximum != nil && n > *f.Maximum:
			return fmt.Sprintf("%d is outside the limits", n)
		default:
			return ""
		}
	}
	return fmt.Sprintf("%v is not of the type %s", value, f.Type)
}

func integer(value any) (n int64, ok bool) {
	switch v := value.(type) {
	case int64:
		return v, true
	case float64:
		return int64(v), v == float64(int64(v))
	}
	return 0, false
}

// Value is a value that the field may have: its default, if it has one.
func (f Field) Value() any {
	if n, ok := integer(f.Default); ok {
		return n
	}
	switch {
	case f.Default != nil:
		return f.Default
	case f.Type == "boolean":
		return true
	case f.Type == "integer" && f.Minimum != nil:
		return *f.Minimum
	case f.Type == "integer" && f.Maximum != nil:
		return *f.Maximum - 1
	case f.Type == "integer":
		return int64(1)
	case f.Enum != nil:
		return f.Enum[0]
	}
	return "a" // with any maxLength another value has room
}

// Other is another value that the field may have.
func (f Field) Other() any {
	switch v := f.Value().(type) {
	case bool:
		return !v
	case int64:
		if f.Maximum != nil && v == *f.Maximum {
			return v - 1
		}
		return v + 1
	case string:
		for _, other := range f.Enum {
			if other != v {
				return other
			}
		}
		if f.MaxLength != nil && int64(len(v)) == *f.MaxLength {
			return v[:len(v)-1]
		}
		return v + "x"
	}
	return nil
}

// Wrong are values that the CRD must refuse, by what they break.
func (f Field) Wrong() map[string]any {
	wrong := map[string]any{"type: " + f.Type: []any{}}
	if f.Minimum != nil {
		wrong[fmt.Sprintf("minimum: %d", *f.Minimum)] = *f.Minimum - 1
	}
	if f.Maximum != nil {
		wrong[fmt.Sprintf("maximum: %d", *f.Maximum)] = *f.Maximum + 1
	}
	if f.MaxLength != nil {
		wrong[fmt.Sprintf("maxLength: %d", *f.MaxLength)] = strings.Repeat("x", int(*f.MaxLength)+1)
	}
	if f.Enum != nil {
		wrong["enum: ["+strings.Join(f.Enum, ", ")+"]"] = strings.Join(f.Enum, "") + "x"
	}
	return wrong
}

// Sample is a resource of the kind, with a value for each field.
func (s Specification) Sample() map[string]any {
	spec := map[string]any{}
	for _, f := range s.Fields {
		spec[f.Name] = f.Value()
	}
	return map[string]any{"apiVersion": s.Group + "/" + Version, "kind": s.Kind,
		"metadata": map[string]any{"name": "sample"}, "spec": spec}
}

// YAML is the specification as a file.
func (s Specification) YAML() ([]byte, error) { return yaml.Marshal(s) }
