package main

import (
	"fmt"
	"io"

	"github.com/operator-framework/api/pkg/manifests"
	"github.com/operator-framework/api/pkg/validation"
)

// validate prints what the default validators say of a bundle, and fails when that is anything at all.
func validate(folder string, out io.Writer) error {
	bundle, err := manifests.GetBundleFromDir(folder)
	if err != nil {
		return fmt.Errorf("read the bundle in %s: %w: make one with 'make bundle'", folder, err)
	}
	found := 0
	for _, result := range validation.DefaultBundleValidators.Validate(bundle.ObjectsToValidate()...) {
		for _, finding := range append(result.Errors, result.Warnings...) {
			found++
			if _, err := fmt.Fprintf(out, "%s: %s\n", result.Name, finding.Error()); err != nil {
				return err
			}
		}
	}
	if found > 0 {
		return fmt.Errorf("the bundle in %s has %d errors or warnings", folder, found)
	}
	_, err = fmt.Fprintf(out, "The bundle %s is valid: no error, no warning.\n", bundle.CSV.Name)
	return err
}
