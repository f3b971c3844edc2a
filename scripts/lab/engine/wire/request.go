// Package wire reads the traffic between a client and the API server: the target of a request, the objects in an
// answer, and the boundaries between events of a watch.
package wire

import (
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
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

// methods are the verbs of requests that name or create one object.
var methods = map[string]string{http.MethodGet: Get, http.MethodHead: Get, http.MethodPost: Create,
	http.MethodPut: Update, http.MethodPatch: Patch, http.MethodDelete: Delete}

// Of parses a request as the API server does (k8s.io/apiserver/pkg/endpoints/request, RequestInfo).
func Of(r *http.Request) Request {
	q := Request{Verb: strings.ToLower(r.Method), Path: r.URL.Path}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case parts[0] == "api" && len(parts) >= 3:
		q.Version, parts = parts[1], parts[2:]
	case parts[0] == "apis" && len(parts) >= 4:
		q.Group, q.Version, parts = parts[1], parts[2], parts[3:]
	default:
		return q
	}
	q.Verb = methods[r.Method]
	if parts[0] == "watch" && len(parts) > 1 { // the old form of a watch
		q.Verb, parts = Watch, parts[1:]
	}
	q.place(parts)
	query := r.URL.Query()
	q.DryRun = len(query["dryRun"]) > 0
	switch {
	case q.Verb == Get && q.Name == "":
		q.Verb = List
		if isTrue(query, "watch") {
			q.Verb = Watch
		}
		q.Name = selectedName(query.Get("fieldSelector"))
	case q.Verb == Delete && q.Name == "":
		q.Verb = DeleteCollection
	case q.Verb == Patch:
		kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
		if strings.HasPrefix(kind, "application/apply-patch+") {
			q.Verb = Apply
		}
	}
	return q
}

// place reads namespace, resource, name and subresource from the end of a path. A namespace is also an object with
// its own subresources.
func (r *Request) place(parts []string) {
	if parts[0] == "namespaces" && len(parts) > 1 {
		r.Namespace = parts[1]
		if len(parts) > 2 && parts[2] != "status" && parts[2] != "finalize" {
			parts = parts[2:]
		}
	}
	r.Resource = parts[0]
	if len(parts) > 1 {
		r.Name = parts[1]
	}
	if len(parts) > 2 {
		r.Subresource = parts[2]
	}
}

// isTrue reads a boolean parameter as the API server does: every value that is not false is true.
func isTrue(query url.Values, name string) bool {
	values, ok := query[name]
	if !ok || len(values) == 0 {
		return false
	}
	value := strings.ToLower(values[0])
	return value != "false" && value != "0"
}

// selectedName is the only name that a field selector selects.
func selectedName(selector string) string {
	if selector == "" {
		return ""
	}
	s, err := fields.ParseSelector(selector)
	if err != nil {
		return ""
	}
	name, _ := s.RequiresExactMatch("metadata.name")
	return name
}
