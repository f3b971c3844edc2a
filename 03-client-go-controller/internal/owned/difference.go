package owned

import (
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"example.com/operator-workshop/03-client-go-controller/internal/fields"
)

// Difference returns the path of a field whose live value is not the desired value, "" when the child is up to date.
// All other fields belong to others: defaults of the API server, labels, sidecars. Chapter 04 compares in its hardening.
func (c *Child) Difference() string {
	live, err := runtime.DefaultUnstructuredConverter.ToUnstructured(c.Live)
	utilruntime.Must(err)
	for _, first := range fields.Differences(c.Fields, live) {
		return first.Path
	}
	return ""
}
