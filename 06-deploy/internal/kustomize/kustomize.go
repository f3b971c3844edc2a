// Package kustomize builds manifests from the folders in config/, as `kubectl kustomize` does.
package kustomize

import (
	"bytes"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"example.com/operator-workshop/06-deploy/internal/manifests"
)

// Build returns the manifests of a folder.
func Build(folder string) ([]*unstructured.Unstructured, error) {
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionLegacy // namespaces first, webhooks last
	made, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		return nil, fmt.Errorf("kustomize %s: %w", folder, err)
	}
	text, err := made.AsYaml()
	if err != nil {
		return nil, err
	}
	return manifests.Read(bytes.NewReader(text))
}
