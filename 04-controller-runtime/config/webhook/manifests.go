// Package webhook holds the webhook configurations for an operator that installs its own.
package webhook

import _ "embed"

// Manifests is manifests.yaml, which controller-gen makes of the markers in internal/webhook.
//
//go:embed manifests.yaml
var Manifests []byte
