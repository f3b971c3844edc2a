// Package wire reads the traffic between a client and the API server: the target of a request, the objects in an
// answer, and the boundaries between events of a watch.
package wire

import (
	"mime"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
)

// Verbs of the API. Apply is a patch by server-side apply; the API server's audit log calls it patch, its metrics
// APPLY.
const (
	Get              = "get"
	List             = "list"
	Watch            = "watch"
	Create           = "create"
	Update           = "update"
	Patch            = "patch"
	Apply            = "apply"
	Delete           = "delete"
	DeleteCollection = "deletecollection"
)

// Writes are the verbs that request a change.
var Writes = []string{Create, Update, Patch, Apply, Delete, DeleteCollection}

// A Request is the target of a client's request to the API server.
type Request struct {
	// Verb of the API; for a request without a resource, the HTTP method in lower case.
	Verb string
	// Group, Version, Resource (plural) and Subresource; Resource is empty when the request names none.
	Group, Version, Resource, Subresource string
	// Namespace and Name in the request. A create has no name in its path; its object has the name.
	Namespace, Name string
	// Path of the URL.
	Path string
	// DryRun requests change nothing.
	DryRun bool
}

// IsWrite reports whether the request asks to change a resource.
func (r Request) IsWrite() bool { return r.Resource != "" && slices.Contains(Writes, r.Verb) }

// FullResource names the resource as `kubectl` writes it, with its subresource: "deployments.apps/status". For a request
// without a resource it returns the path.
func (r Request) FullResource() string {
	if r.Resource == "" {
		return r.Path
	}
	what := r.Resource
	if r.Group != "" {
		what += "." + r.Group
	}
	if r.Subresource != "" {
		what += "/" + r.Subresource
	}
	return what
}

// Which is the object: "namespace/name", with "*" for all objects, and only the name without a namespace.
func (r Request) Which() string {
	name := r.Name
	if name == "" {
		name = "*"
	}
	if r.Resource == "" {
		return ""
	}
	if r.Namespace == "" || r.Resource == "namespaces" {
		return name
	}
	return r.Namespace + "/" + name
}

// requests parses requests as the API server does.
var requests = apirequest.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"),
	GrouplessAPIPrefixes: sets.NewString("api")}

// Of parses a request.
func Of(r *http.Request) Request {
	info, err := requests.NewRequestInfo(r)
	if err != nil || !info.IsResourceRequest {
		return Request{Verb: strings.ToLower(r.Method), Path: r.URL.Path}
	}
	q := Request{Verb: info.Verb, Group: info.APIGroup, Version: info.APIVersion, Resource: info.Resource,
		Subresource: info.Subresource, Namespace: info.Namespace, Name: info.Name, Path: info.Path,
		DryRun: r.URL.Query().Has("dryRun")}
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if q.Verb == Patch && strings.HasPrefix(kind, "application/apply-patch+") {
		q.Verb = Apply
	}
	return q
}
