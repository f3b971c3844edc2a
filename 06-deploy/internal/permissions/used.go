package permissions

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
)

// A Request is a line of the audit log. Level Metadata, the least there is, has all of it.
type Request struct {
	Stage, Verb, RequestURI string
	User                    struct{ Username string }
	ObjectRef               struct{ APIGroup, Resource, Namespace, Name, Subresource string }
	ResponseStatus          struct{ Code int }
	Annotations             map[string]string
}

// ReadAudit returns the requests of a user to the API server. An incomplete last line is left out.
func ReadAudit(in io.Reader, user string) (all []Request, err error) {
	for lines := bufio.NewReader(in); ; {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		var r Request
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, fmt.Errorf("read the audit log: %w: it must have one JSON object a line (--audit-log-format=json)", err)
		}
		// A watch counts when it begins, everything else when it is answered.
		begun := r.Stage == "ResponseStarted"
		if r.User.Username == user && r.Stage != "RequestReceived" && begun == (r.Verb == "watch" &&
			r.ResponseStatus.Code == http.StatusOK) {
			all = append(all, r)
		}
	}
}

// denied reports whether a permission was missing. Admission refuses with the same code.
func (r Request) denied() bool {
	return r.ResponseStatus.Code == http.StatusForbidden && r.Annotations["authorization.k8s.io/decision"] == "forbid"
}

// uses reports whether a request needed a permission. An apply that created its object needed two: patch and create.
// An apply also sets the owner reference. Where the API server enforces OwnerReferencesPermissionEnforcement, that needs
// delete if the object has no such reference, and the audit log does not record whether it has.
func (r Request) uses(p Permission) bool {
	resource := r.ObjectRef.Resource
	if r.ObjectRef.Subresource != "" {
		resource += "/" + r.ObjectRef.Subresource
	}
	if resource == "" { // a request without a resource has a path
		path, _, _ := strings.Cut(r.RequestURI, "?")
		resource = strings.TrimPrefix(path, "/")
	}
	verb := p.Verb == r.Verb || p.Verb == "create" && r.Verb == "patch" && r.ResponseStatus.Code == http.StatusCreated ||
		p.Verb == "delete" && r.Verb == "patch"
	return verb && p.Group == r.ObjectRef.APIGroup && p.Resource == resource &&
		(p.Name == "" || p.Name == r.ObjectRef.Name) && (p.Namespace == "" || p.Namespace == r.ObjectRef.Namespace)
}

// A Usage is how requests used permissions.
type Usage struct {
	Requests, Permissions int
	// Denied are requests that a permission was missing for, Unused permissions that nothing needed.
	Denied, Unused []string
}

// Compare compares requests with permissions.
func Compare(granted []Permission, requests []Request) Usage {
	u := Usage{Requests: len(requests), Permissions: len(granted)}
	for _, r := range requests {
		if r.denied() {
			u.Denied = append(u.Denied, r.Verb+" "+r.RequestURI)
		}
	}
	slices.Sort(u.Denied)
	u.Denied = slices.Compact(u.Denied)
	for _, p := range granted {
		used := slices.ContainsFunc(requests, func(r Request) bool { return !r.denied() && r.uses(p) })
		if !used {
			u.Unused = append(u.Unused, p.String())
		}
	}
	return u
}

// Report writes the result, and returns an error if it found a problem.
func (u Usage) Report(out io.Writer) error {
	for _, d := range u.Denied {
		fmt.Fprintf(out, "denied: %s\n", d)
	}
	for _, p := range u.Unused {
		fmt.Fprintf(out, "not used: %s\n", p)
	}
	switch {
	case u.Requests == 0:
		return errors.New("the audit log has no request of this account: is it the right log, and did the operator run?")
	case len(u.Denied) > 0:
		return fmt.Errorf("%d requests were denied: add what they need to the markers (+kubebuilder:rbac) beside the code "+
			"that sends them", len(u.Denied))
	case len(u.Unused) > 0:
		return fmt.Errorf(
			"%d permissions were not used: take them out of the markers, or let the operator do what needs them", len(u.Unused))
	}
	_, err := fmt.Fprintf(out, "Nothing was denied and nothing is too much: %d requests used all of %d permissions.\n",
		u.Requests, u.Permissions)
	return err
}
