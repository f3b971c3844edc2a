package specification

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), File)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestAWrongSpecification: an error names the field, the reason and the fix.
func TestAWrongSpecification(t *testing.T) {
	for change, want := range map[string][]string{
		"->":                                                          nil,
		"Greeting->greeting":                                          {`kind: "greeting" is not the name of a kind`, "such as Greeting"},
		"Greeting->Service":                                           {"kind: Service is a kind of Kubernetes: choose another name"},
		"example.com->example":                                        {`group: "example" is not an API group`, "such as example.com"},
		"example.com->apps.k8s.io":                                    {"group: apps.k8s.io belongs to the Kubernetes project"},
		"type: string->type: text":                                    {`fields[0] (message): type: "text" is not a type`, "choose from string, integer"},
		"name: replicas->name: message":                               {"fields[1] (message): the name is there twice"},
		"name: message->name: the message":                            {`fields[0] (the message): name: "the message" is not`, "such as pageSize"},
		"default: 1,->default: 7,":                                    {"fields[1] (replicas): default: 7 is outside the limits: write a value"},
		"default: 1,->default: one,":                                  {"default: one is not of the type integer"},
		"default: Hello,->default: 1,":                                {"default: 1 is not of the type string"},
		"maxLength: 40->maxLength: 4":                                 {`default: "Hello" is longer than 4`},
		"maxLength: 40->maximum: 4":                                   {"fields[0] (message): minimum, maximum: they limit integers: remove them"},
		"minimum: 1, maximum: 3->maxLength: 3":                        {"maxLength, enum: they limit strings"},
		"maxLength: 40->enum: [Hello]":                                {"enum: the check changes the field", "list two values"},
		"maxLength: 40->enum: [Hi, Bye]":                              {`default: "Hello" is not in enum`},
		"maximum: 3->maximum: 1":                                      {"minimum, maximum: the check changes the field"},
		"reaches: [ConfigMap]->reaches: []":                           {"fields[0] (message): reaches: an operator that ignores the field"},
		"reaches: [ConfigMap]->reaches: [Pod]":                        {"reaches: Pod is not in children: add it there"},
		"[ConfigMap, Deployment]->[ConfigMap, Deployment, Pod]":       {`children: "Pod" is not a kind that the lab knows: choose from`},
		"[ConfigMap, Deployment]->[ConfigMap, Deployment, ConfigMap]": {"children: ConfigMap is there twice"},
		"[Ready]->[is ready]":                                         {`conditions: "is ready" is not the type of a condition`},
		"kind: Greeting->kinds: Greeting":                             {`unknown field "kinds"`, "reaches: [ConfigMap]"},
		"children: [ConfigMap, Deployment]->children: ConfigMap":      {"children must be a list"},
	} {
		old, now, _ := strings.Cut(change, "->")
		_, err := Read(write(t, strings.Replace(Example, old, now, 1)))
		if (err == nil) != (want == nil) {
			t.Errorf("%s: %v", change, err)
		}
		for _, part := range want {
			if err != nil && !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %q is not in: %v", change, part, err)
			}
		}
	}
}

// TestAMistakeIsOneError: what follows from a wrong type is not reported, and an empty file has its own sentence.
func TestAMistakeIsOneError(t *testing.T) {
	_, err := Read(write(t, strings.Replace(Example, "type: string", "type: text", 1)))
	if err == nil || strings.Count(err.Error(), "fields[0]") != 1 {
		t.Errorf("a wrong type: %v", err)
	}
	if _, err := Read(write(t, "\n")); err == nil || !strings.Contains(err.Error(), " is empty: write a specification") {
		t.Errorf("an empty file: %v", err)
	}
}

// TestValues: the checks set them in a sample.
func TestValues(t *testing.T) {
	two, nine := int64(2), int64(9)
	for name, test := range map[string]struct {
		field Field
		value any
		other any
		wrong int
	}{
		"a string":           {Field{Type: "string"}, "a", "ax", 1},
		"a full string":      {Field{Type: "string", Default: "ab", MaxLength: &two}, "ab", "a", 2},
		"a choice":           {Field{Type: "string", Enum: []string{"x", "y"}}, "x", "y", 2},
		"a boolean":          {Field{Type: "boolean"}, true, false, 1},
		"false":              {Field{Type: "boolean", Default: false}, false, true, 1},
		"a number from YAML": {Field{Type: "integer", Default: float64(9), Maximum: &nine}, int64(9), int64(8), 2},
		"at least":           {Field{Type: "integer", Minimum: &two}, int64(2), int64(3), 2},
		"at most":            {Field{Type: "integer", Maximum: &two}, int64(1), int64(2), 2},
	} {
		f := test.field
		if d := cmp.Diff([]any{test.value, test.other}, []any{f.Value(), f.Other()}); d != "" ||
			len(f.Wrong()) != test.wrong {
			t.Errorf("%s: %s, %v", name, d, f.Wrong())
		}
		for _, value := range []any{f.Value(), f.Other()} {
			if why := f.unfit(value); why != "" {
				t.Errorf("%s: %s", name, why)
			}
		}
		for what, value := range f.Wrong() {
			if f.unfit(value) == "" {
				t.Errorf("%s: %v is no value for %s", name, value, what)
			}
		}
	}
}
