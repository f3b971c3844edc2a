//go:build e2e

// Package e2e follows the operator's life in a real cluster: image, deployment, real pods, removal.
// `make test-e2e` gives it a kind cluster.
package e2e

import (
	"cmp"
	"os"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/example/nginx-operator/test/utils"
)

// image is the operator's image; the variable IMG replaces it.
var image = cmp.Or(os.Getenv("IMG"), "example.com/"+name+":e2e")

func TestE2E(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, name)
}

var _ = BeforeSuite(func() { buildImages([]string{"IMG=" + image}, image) })

// field returns a function that reads one field of a resource.
func field(what, name, path string) func() (string, error) {
	return func() (string, error) { return utils.Kubectl("get", what, name, "-o", "jsonpath={"+path+"}") }
}
