// Package wire reads what passes between a client and the API server: what a request asks for, which
// objects an answer holds, where one event of a watch ends and the next begins.
package wire

import (
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
)

// Verbs of the API. Apply is the patch that is a server-side apply; the API server's audit log calls it
// patch, its metrics APPLY.
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

// Writes are the verbs that ask for a change.
var Writes = []string{Create, Update, Patch, Apply, Delete, DeleteCollection}

// A Request is what a client asks of the API server.
type Request struct {
	// Verb of the API; of a request for no resource, the HTTP method in lower case.
	Verb string
	// Group, Version, Resource (plural) and Subresource; Resource is empty when none is asked for.
	Group, Version, Resource, Subresource string
	// Namespace and Name as the request tells them. A create tells no name: its object does.
	Namespace, Name string
	// Path is that of the URL.
	Path string
	// DryRun requests change nothing.
	DryRun bool
}

// IsWrite reports whether a resource is asked to change.
func (r Request) IsWrite() bool { return r.Resource != "" && slices.Contains(Writes, r.Verb) }

// What is the resource as `kubectl` writes it, with its subresource: "deployments.apps/status". Of a
// request for no resource it is the path.
func (r Request) What() string {
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

// Which is the object: "namespace/name", with "*" where all are meant, and only the name where there is
// no namespace.
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

// methods are the verbs of requests that name one object, or make one.
var methods = map[string]string{http.MethodGet: Get, http.MethodHead: Get, http.MethodPost: Create,
	http.MethodPut: Update, http.MethodPatch: Patch, http.MethodDelete: Delete}

// Of reads a request as the API server does (k8s.io/apiserver/pkg/endpoints/request, RequestInfo).
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

// place reads namespace, resource, name and subresource from the end of a path. A namespace is also an
// object, with subresources of its own.
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

// isTrue reads a boolean parameter as the API server does: whatever is not false is true.
func isTrue(query url.Values, name string) bool {
	values, ok := query[name]
	if !ok || len(values) == 0 {
		return false
	}
	value := strings.ToLower(values[0])
	return value != "false" && value != "0"
}

// selectedName is the name that a field selector leaves as the only one.
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
