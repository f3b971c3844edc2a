// Package composite is a controller for any parent and children: a hook decides the desired state, and the controller
// watches, calls the hook, and writes. It stands for Metacontroller's CompositeController, and reads its manifest.
package composite

import (
	"fmt"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// Config is the part of a CompositeController that this controller knows.
type Config struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		// GenerateSelector must be true: children are found by their owner, never by a selector of the parent.
		GenerateSelector bool       `json:"generateSelector"`
		ParentResource   Resource   `json:"parentResource"`
		ChildResources   []Resource `json:"childResources"`
		Hooks            struct {
			Sync struct {
				Webhook Webhook `json:"webhook"`
			} `json:"sync"`
		} `json:"hooks"`
	} `json:"spec"`
}

// A Resource is the resource of a parent or of a child.
type Resource struct {
	APIVersion     string `json:"apiVersion"`
	Resource       string `json:"resource"`
	UpdateStrategy struct {
		// Method is InPlace, or OnDelete, the default, with which the controller never changes an existing child.
		Method string `json:"method"`
	} `json:"updateStrategy"`
}

// Webhook is the address of the hook.
type Webhook struct {
	URL string `json:"url"`
	// Timeout limits a call; 0 means 10s.
	Timeout metav1.Duration `json:"timeout"`
}

// The methods of updateStrategy that this controller knows.
const (
	InPlace  = "InPlace"
	OnDelete = "OnDelete"
)

// ReadConfig reads a manifest. A field that this controller does not know is an error: without it the manifest would
// mean something else.
func ReadConfig(file string) (*Config, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	c := &Config{}
	if err := yaml.UnmarshalStrict(data, c); err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	return c, c.check(file)
}

func (c *Config) check(file string) error {
	if c.APIVersion != "metacontroller.k8s.io/v1alpha1" || c.Kind != "CompositeController" || c.Metadata.Name == "" {
		return fmt.Errorf("%s is not a CompositeController of metacontroller.k8s.io/v1alpha1 with a name", file)
	}
	if !c.Spec.GenerateSelector {
		return fmt.Errorf("%s: spec.generateSelector must be true: selectors of parents are not supported", file)
	}
	for _, child := range c.Spec.ChildResources {
		switch child.UpdateStrategy.Method {
		case "", OnDelete, InPlace:
		default:
			return fmt.Errorf("%s: updateStrategy.method of %s is %q, supported are InPlace and OnDelete", file,
				child.Resource, child.UpdateStrategy.Method)
		}
	}
	if c.Spec.Hooks.Sync.Webhook.Timeout.Duration < 0 {
		return fmt.Errorf("%s: the timeout of the sync hook must not be negative", file)
	}
	return nil
}

// gvr is the resource as API machinery names it.
func (r Resource) gvr() (schema.GroupVersionResource, error) {
	gv, err := schema.ParseGroupVersion(r.APIVersion)
	return gv.WithResource(r.Resource), err
}
