package window

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

// Managed is an object as YAML, with the managers of its fields.
type Managed struct {
	Managers []Manager `json:"managers"`
	Lines    []Line    `json:"lines"`
	UID      string    `json:"uid"`
	// Away is the reason for which there is no object. Deleted means that the API server has no such object.
	Away    string `json:"away,omitempty"`
	Deleted bool   `json:"deleted,omitempty"`
}

// A Manager is an entry of metadata.managedFields: a program, and how it wrote.
type Manager struct {
	Manager     string `json:"manager"`
	Operation   string `json:"operation"`
	Subresource string `json:"subresource,omitempty"`
	Time        string `json:"time,omitempty"`
}

// A Line of YAML, with the managers of its field, by their place in the list.
type Line struct {
	Text     string `json:"text"`
	Managers []int  `json:"managers,omitempty"`
}

const hidden = "(not shown)"

// manage draws an object.
func manage(object map[string]any) Managed {
	var entries []struct {
		Manager
		FieldsV1 map[string]any `json:"fieldsV1"`
	}
	metadata, _ := object["metadata"].(map[string]any)
	if data, err := json.Marshal(metadata["managedFields"]); err == nil {
		_ = json.Unmarshal(data, &entries)
	}
	delete(metadata, "managedFields")
	drawn := Managed{Managers: []Manager{}}
	drawn.UID, _ = metadata["uid"].(string)
	owned := owners{}
	for i, entry := range entries {
		drawn.Managers = append(drawn.Managers, entry.Manager)
		owned[i] = entry.FieldsV1
	}
	drawn.Lines = mapping(object, owned)
	return drawn
}

// hideValues hides all that an answer for a Secret has besides its metadata and type. Annotations can have the data, too:
// kubectl apply writes them into last-applied-configuration.
func hideValues(secret map[string]any) {
	for key, value := range secret {
		switch key {
		case "apiVersion", "kind", "type", "immutable":
		case "metadata":
			if metadata, ok := value.(map[string]any); ok && metadata["annotations"] != nil {
				metadata["annotations"] = masked(metadata["annotations"])
			}
		default:
			secret[key] = masked(value)
		}
	}
}

// masked returns a value with the keys of its mappings only.
func masked(value any) any {
	fields, ok := value.(map[string]any)
	if !ok {
		return hidden
	}
	for key, field := range fields {
		fields[key] = masked(field)
	}
	return fields
}

// owners has, for each manager, the fields below a place that the manager owns, in the format FieldsV1. An empty set
// means the whole value.
type owners map[int]map[string]any

// of returns the managers of the place itself.
func (o owners) of() (managers []int) {
	for manager, set := range o {
		if _, itself := set["."]; itself || len(set) == 0 {
			managers = append(managers, manager)
		}
	}
	slices.Sort(managers)
	return managers
}

// below returns the owners of a field or item below a place; is reports which key of a set means that field or item.
func (o owners) below(is func(key string) bool) owners {
	found := owners{}
	for manager, set := range o {
		if len(set) == 0 {
			found[manager] = set
		}
		for key, fields := range set {
			if fields, ok := fields.(map[string]any); ok && is(key) {
				found[manager] = fields
			}
		}
	}
	return found
}

// isItem reports whether a key of a set means an item of a list: by the item's keys, its value or its place.
func isItem(key string, place int, item any) bool {
	kind, text, _ := strings.Cut(key, ":")
	if kind == "i" {
		return text == strconv.Itoa(place)
	}
	var want any
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	if decoder.Decode(&want) != nil {
		return false
	}
	fields, isMap := item.(map[string]any)
	keys, hasKeys := want.(map[string]any)
	if kind != "k" || !isMap || !hasKeys {
		return kind == "v" && reflect.DeepEqual(want, item)
	}
	for name, value := range keys {
		if !reflect.DeepEqual(fields[name], value) {
			return false
		}
	}
	return true
}

func mapping(object map[string]any, owned owners) (lines []Line) {
	for _, key := range slices.Sorted(maps.Keys(object)) {
		name, value := scalar(key)[0], object[key]
		own := owned.below(func(field string) bool { return field == "f:"+key })
		head := Line{name + ":", own.of()}
		switch value := value.(type) {
		case map[string]any:
			if len(value) > 0 {
				lines = append(append(lines, head), indent(mapping(value, own), "  ", "  ")...)
				continue
			}
		case []any:
			if len(value) > 0 {
				lines = append(append(lines, head), list(value, own)...)
				continue
			}
		}
		for i, text := range scalar(value) {
			if i == 0 {
				text = head.Text + " " + text
			} else {
				text = "  " + strings.TrimPrefix(text, "  ")
			}
			lines = append(lines, Line{text, head.Managers})
		}
	}
	return lines
}

func list(items []any, owned owners) (lines []Line) {
	for i, item := range items {
		own := owned.below(func(key string) bool { return isItem(key, i, item) })
		var some []Line
		switch item := item.(type) {
		case map[string]any:
			some = mapping(item, own)
		default:
			for _, text := range scalar(item) {
				some = append(some, Line{text, own.of()})
			}
		}
		lines = append(lines, indent(some, "- ", "  ")...)
	}
	return lines
}

func indent(lines []Line, first, others string) []Line {
	for i := range lines {
		lines[i].Text = others + lines[i].Text
		if i == 0 {
			lines[i].Text = first + lines[i].Text[len(others):]
		}
	}
	return lines
}

// scalar returns a value as YAML.
func scalar(value any) []string {
	data, err := yaml.Marshal(value)
	if err != nil {
		return []string{err.Error()}
	}
	return strings.Split(strings.TrimRight(string(data), "\n"), "\n")
}
