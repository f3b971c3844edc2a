package v1alpha1

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// A property is the part of a generated schema that these tests check for a field.
type property struct {
	Description string              `json:"description"`
	Default     *int64              `json:"default"`
	Minimum     *int64              `json:"minimum"`
	Maximum     *int64              `json:"maximum"`
	Required    []string            `json:"required"`
	Properties  map[string]property `json:"properties"`
	ListType    string              `json:"x-kubernetes-list-type"`
	ListMapKeys []string            `json:"x-kubernetes-list-map-keys"`
}

// generate runs controller-gen on this package, as make generate and make manifests do.
func generate(t *testing.T, generator string) string {
	t.Helper()
	out, err := exec.Command("controller-gen", generator, "paths=.", "output:stdout").CombinedOutput()
	if err != nil {
		t.Fatalf("controller-gen %s: %v\n%s", generator, err, out)
	}
	return string(out)
}

type version struct {
	Subresources map[string]any `json:"subresources"`
	Schema       struct {
		OpenAPIV3Schema property `json:"openAPIV3Schema"`
	} `json:"schema"`
}

func crd(t *testing.T) version {
	t.Helper()
	var crd struct {
		Spec struct {
			Versions []version `json:"versions"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal([]byte(generate(t, "crd")), &crd); err != nil || len(crd.Spec.Versions) != 1 {
		t.Fatalf("controller-gen crd made no CRD with one version (%v)", err)
	}
	return crd.Spec.Versions[0]
}

// markerLike finds a comment with the text of a marker. controller-gen adds such a comment to the description.
var markerLike = regexp.MustCompile(`kubebuilder:\S+`)

func TestFields(t *testing.T) {
	spec := crd(t).Schema.OpenAPIV3Schema.Properties["spec"]
	for name, want := range map[string]struct{ byDefault, least, most int64 }{
		"size":          {1, 1, 5},
		"containerPort": {11211, 1, 65535},
	} {
		field := spec.Properties[name]
		if line := markerLike.FindString(field.Description); line != "" {
			t.Errorf("spec.%s has %q in its description: only a comment that begins with + is a marker", name, line)
			continue // its other mistakes may be consequences
		}
		for what, is := range map[string]struct {
			got  *int64
			want int64
		}{
			"default": {field.Default, want.byDefault},
			"minimum": {field.Minimum, want.least},
			"maximum": {field.Maximum, want.most},
		} {
			if is.got == nil {
				t.Errorf("spec.%s has no %s, it must be %d", name, what, is.want)
			} else if *is.got != is.want {
				t.Errorf("spec.%s has the %s %d, it must be %d", name, what, *is.got, is.want)
			}
		}
	}
	for _, name := range spec.Required {
		if spec.Properties[name].Default != nil {
			t.Errorf("spec.%s has a default, and is required: kubectl explain demands it from every user", name)
		} else if !markerLike.MatchString(spec.Properties[name].Description) {
			t.Errorf("spec.%s is required: a Memcached without it is refused", name)
		}
	}
}

func TestStatus(t *testing.T) {
	crd := crd(t)
	if _, there := crd.Subresources["status"]; !there {
		t.Error("there is no subresource status: a user's update of the spec overwrites the status")
	}
	conditions := crd.Schema.OpenAPIV3Schema.Properties["status"].Properties["conditions"]
	if conditions.ListType != "map" || strings.Join(conditions.ListMapKeys, " ") != "type" {
		t.Errorf("status.conditions is a list of type %q with the keys %q: "+
			"+listType=map and +listMapKey=type make it a map by type", conditions.ListType, conditions.ListMapKeys)
	}
	code := generate(t, "object")
	for _, name := range []string{"Memcached", "MemcachedList"} {
		if !strings.Contains(code, "func (in *"+name+") DeepCopyObject()") {
			t.Errorf("controller-gen object made no DeepCopyObject of %s: it is not a runtime.Object", name)
		}
	}
}
