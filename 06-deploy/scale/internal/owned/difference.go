package owned

import "example.com/operator-workshop/06-deploy/scale/internal/fields"

// Difference returns the path of a field whose live value is not the desired value, "" when the child is up to date.
// All other fields belong to others: defaults of the API server, labels, sidecars. Demanded by behaviour/10-restarted: an
// apply that changes nothing is not sent.
func (c *Child) Difference() string {
	for _, first := range fields.Differences(fields.Of(c.Desired), fields.Of(c.Live)) {
		return first.Path.String()
	}
	return ""
}
