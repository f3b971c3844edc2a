package teaching

import (
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

// MeasuredFile has how long pages ran, seen from the checkout.
const MeasuredFile = "scripts/teaching/pages.yaml"

// Measured is how long a machine ran the blocks of pages, once everything was compiled.
type Measured struct {
	Machine string         `json:"machine"`
	Seconds map[string]int `json:"seconds"`
}

// ReadMeasured reads what was recorded; where there is nothing yet, it is empty.
func ReadMeasured(root string) (m Measured, err error) {
	data, err := os.ReadFile(filepath.Join(root, MeasuredFile))
	if err != nil && !os.IsNotExist(err) {
		return m, err
	}
	if err := yaml.UnmarshalStrict(data, &m); err != nil {
		return m, fmt.Errorf("%s: %w", MeasuredFile, err)
	}
	if m.Seconds == nil {
		m.Seconds = map[string]int{}
	}
	return m, nil
}

// Write records them.
func (m Measured) Write(root string) error {
	data, err := yaml.Marshal(m)
	if err != nil {
		return err
	}
	const head = "# How long pages ran, everything compiled. Written by `scripts/workshop pages --record FILE…`.\n"
	return os.WriteFile(filepath.Join(root, MeasuredFile), append([]byte(head), data...), 0o644)
}
