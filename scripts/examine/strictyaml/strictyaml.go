// Package strictyaml reads YAML files and refuses unknown fields.
package strictyaml

import (
	"fmt"
	"os"

	"sigs.k8s.io/yaml"
)

// Read reads a file into a value. A field that the value lacks is an error.
func Read(path string, into any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := yaml.UnmarshalStrict(data, into); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}
