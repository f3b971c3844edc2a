// Package tools builds the programs that are not ours, at the versions that the go.mod files of scripts/tools,
// scripts/operator-sdk, scripts/restic and scripts/gopls pin, into the repository's bin/.
package tools

// A Tool is one program and the package from which it is built.
type Tool struct {
	// Name is the name of the program in bin/.
	Name string
	// Built is the name that `go build` gives to the program, where it is another one.
	Built string
	// Package is the import path of its main package.
	Package string
	// Module is the folder in scripts/ whose go.mod pins the program; empty means tools. A program that needs other
	// versions than Kubernetes is in another module, and is compiled only on request.
	Module string
	// Tags are the build tags that the program needs, separated by commas.
	Tags string
	// Versions are the variables of the program that the linker sets to its module's version.
	Versions []string
}

// Gopls is Go's language server. It is not in All: the window's editor uses it where it is, and `make tools` and a bundle
// do not wait for it.
var Gopls = Tool{Name: "gopls", Package: "golang.org/x/tools/gopls", Module: "gopls"}

// All lists every program that the workshop needs and that is not ours.
var All = []Tool{
	{Name: "etcd", Built: "server", Package: "go.etcd.io/etcd/server/v3"},
	{Name: "kube-apiserver", Package: "k8s.io/kubernetes/cmd/kube-apiserver"},
	{Name: "kube-controller-manager", Package: "k8s.io/kubernetes/cmd/kube-controller-manager"},
	{Name: "kube-scheduler", Package: "k8s.io/kubernetes/cmd/kube-scheduler"},
	{Name: "kubectl", Package: "k8s.io/kubernetes/cmd/kubectl"},
	{Name: "kwok", Package: "sigs.k8s.io/kwok/cmd/kwok"},
	{Name: "controller-gen", Package: "sigs.k8s.io/controller-tools/cmd/controller-gen"},
	{Name: "deepcopy-gen", Package: "k8s.io/code-generator/cmd/deepcopy-gen"},
	{Name: "register-gen", Package: "k8s.io/code-generator/cmd/register-gen"},
	{Name: "applyconfiguration-gen", Package: "k8s.io/code-generator/cmd/applyconfiguration-gen"},
	{Name: "client-gen", Package: "k8s.io/code-generator/cmd/client-gen"},
	{Name: "lister-gen", Package: "k8s.io/code-generator/cmd/lister-gen"},
	{Name: "informer-gen", Package: "k8s.io/code-generator/cmd/informer-gen"},
	{Name: "kind", Package: "sigs.k8s.io/kind"},
	{Name: "kustomize", Package: "sigs.k8s.io/kustomize/kustomize/v5"},
	{Name: "kubebuilder", Package: "sigs.k8s.io/kubebuilder/v4"},
	operatorSDK,
	{Name: "restic", Package: "github.com/restic/restic/cmd/restic", Module: "restic"},
	{Name: "rest-server", Package: "github.com/restic/rest-server/cmd/rest-server", Module: "restic"},
	{Name: "rclone", Package: "example.com/operator-workshop/scripts/restic/rclone", Module: "restic"},
}

// operatorSDK is built without the C libraries for signatures and storage of images. The releases of operator-sdk set
// the same variables.
var operatorSDK = Tool{
	Name:    "operator-sdk",
	Package: "github.com/operator-framework/operator-sdk/cmd/operator-sdk",
	Module:  "operator-sdk",
	Tags:    "containers_image_openpgp,exclude_graphdriver_btrfs,exclude_graphdriver_devicemapper",
	Versions: []string{
		"github.com/operator-framework/operator-sdk/internal/version.Version",
		"github.com/operator-framework/operator-sdk/internal/version.GitVersion",
		"github.com/operator-framework/operator-sdk/internal/version.ImageVersion",
	},
}

// Sets of programs by the purpose they serve.
var (
	// Envtest has the programs that the tests of every chapter start.
	Envtest = []string{"etcd", "kube-apiserver", "kubectl"}
	// Local has the programs that the local environment runs.
	Local = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kwok"}
	// Generators has the programs that `make generate` of the chapters runs.
	Generators = []string{"controller-gen", "deepcopy-gen", "register-gen", "applyconfiguration-gen", "client-gen",
		"lister-gen", "informer-gen", "kustomize"}
	// Kind has the programs that the kind environment needs besides Docker.
	Kind = []string{"kind", "kubectl"}
)
