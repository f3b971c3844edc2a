// Package strictyaml reads YAML files and refuses unknown fields.
package strictyaml

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"

	"sigs.k8s.io/yaml"
)

// Read reads a file into a value. A field that the value lacks is an error.
func Read(path string, into any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	err = yaml.UnmarshalStrict(data, into)
	if wrong := new(json.UnmarshalTypeError); errors.As(err, &wrong) && wrong.Type.Kind() == reflect.Slice {
		return fmt.Errorf("read %s: %s must be a list, in brackets also when it has one item: %s: [VALUE]", path, wrong.Field,
			wrong.Field)
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}
