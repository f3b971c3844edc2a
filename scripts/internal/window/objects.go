package window

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"example.com/operator-workshop/scripts/examine/loop"
	"example.com/operator-workshop/scripts/examine/process"
)

// A Reader reads objects of the local cluster.
type Reader interface {
	// Get returns the API server's response to a GET of a path. A missing object is fs.ErrNotExist.
	Get(ctx context.Context, path string) ([]byte, error)
	// Lens returns the reason for which the lens records nothing, or nil.
	Lens() error
	Close()
}

// An Object has the facts about an object that the tree shows, without the object's data.
type Object struct {
	// Resource is group/version/resource, with an empty group for the core one.
	Resource  string `json:"resource"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
	// Custom is set for a custom resource.
	Custom bool `json:"custom,omitempty"`
	// Facts describe the reported status, each in some words.
	Facts []string `json:"facts,omitempty"`
	// Owners has the UIDs of the object's owners.
	Owners []string `json:"owners,omitempty"`
}

// children are the resources that operators of the workshop make. The tab names the other resources that programs have
// requested.
var children = []string{"/v1/configmaps", "/v1/services", "/v1/pods", "apps/v1/deployments", "apps/v1/replicasets"}

// resourcePattern is group/version/resource.
var resourcePattern = regexp.MustCompile(`^([a-z0-9.-]*)/(v[a-z0-9]+)/([a-z0-9-]+)$`)

// moreResources is the maximum number of resources that a tab may add.
const moreResources = 24

// apiPath returns the path of a resource, or of one object when a name is given.
func apiPath(resource, namespace, name string) (string, error) {
	parts := resourcePattern.FindStringSubmatch(resource)
	if parts == nil || strings.Contains(parts[1], "..") {
		return "", fmt.Errorf("resource %q: it must be group/version/resource", resource)
	}
	for _, segment := range []string{namespace, name} {
		if segment == "." || segment == ".." || strings.ContainsAny(segment, "/%") { // as the API server's rule for names
			return "", fmt.Errorf("%q is not the name of an object", segment)
		}
	}
	p := path.Join("/apis", parts[1], parts[2])
	if parts[1] == "" {
		p = path.Join("/api", parts[2])
	}
	if namespace != "" {
		p += "/namespaces/" + url.PathEscape(namespace)
	}
	p += "/" + parts[3]
	if name != "" {
		p += "/" + url.PathEscape(name)
	}
	return p, nil
}

// A LoopState is the present state of the local cluster.
type LoopState struct {
	Objects  []Object         `json:"objects"`
	Programs []RunningProgram `json:"programs"`
	// Cluster is the UID of the namespace kube-system: another cluster has another UID.
	Cluster string `json:"cluster,omitempty"`
	// Away is the reason for which there are no objects, or no records.
	Away string `json:"away,omitempty"`
}

// loopState answers with the objects of the cluster that belong together, and with the programs that run.
func (s *Server) loopState(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	resources := append(children[:len(children):len(children)], query["resource"]...)
	if len(resources) > len(children)+moreResources {
		http.Error(w, "These are too many resources.", http.StatusBadRequest)
		return
	}
	var paths []string
	for _, resource := range resources {
		p, err := apiPath(resource, "", "")
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		paths = append(paths, p)
	}
	state := LoopState{Programs: programs(query["pid"])}
	reader, err := s.Objects()
	var all []Object
	if err == nil {
		defer reader.Close()
		state.Cluster = identity(r.Context(), reader)
		all, err = listAll(r.Context(), reader, resources, paths)
		err = cmp.Or(err, reader.Lens())
	}
	if err != nil {
		state.Away = err.Error()
	}
	state.Objects = related(all)
	answer(w, state)
}

// identity returns the UID of a namespace that each cluster has, or nothing when the API server does not answer.
func identity(ctx context.Context, reader Reader) string {
	var namespace loop.Object
	data, err := reader.Get(ctx, "/api/v1/namespaces/kube-system")
	if err == nil {
		_ = json.Unmarshal(data, &namespace)
	}
	return namespace.Metadata.UID
}

// listAll reads resources. A resource that is not served, or is not served any more, has no objects.
func listAll(ctx context.Context, reader Reader, resources, paths []string) (all []Object, err error) {
	for i, resource := range resources {
		if slices.Index(resources, resource) < i {
			continue
		}
		data, err := reader.Get(ctx, paths[i])
		if err == nil {
			var some []Object
			some, err = listed(resource, data)
			all = append(all, some...)
		}
		if err != nil && resource == children[0] { // every cluster serves this resource
			return nil, err
		}
	}
	return all, nil
}

func listed(resource string, data []byte) (all []Object, err error) {
	var list struct {
		Kind  string
		Items []loop.Object
	}
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, err
	}
	group, _, _ := strings.Cut(resource, "/")
	custom := loop.IsCustom(group)
	for _, item := range list.Items {
		m := item.Metadata
		o := Object{Resource: resource, Kind: strings.TrimSuffix(list.Kind, "List"), Namespace: m.Namespace, Name: m.Name,
			UID: m.UID, Custom: custom, Facts: item.Facts(), Owners: item.Owners()}
		if len(o.Owners) == 0 && !custom {
			o.Facts = append(o.Facts, loop.NoOwner)
		}
		all = append(all, o)
	}
	return all, nil
}

// related returns the custom resources, the objects that have or are an owner, and the objects with the name of a
// custom resource, because an operator that wants to make such an object finds it.
func related(all []Object) []Object {
	keep := map[string]bool{}
	for _, o := range all {
		if o.Custom {
			keep[o.UID], keep[o.Namespace+"/"+o.Name] = true, true
		}
		for _, owner := range o.Owners {
			keep[o.UID], keep[owner] = true, true
		}
	}
	kept := []Object{}
	for _, o := range all {
		if keep[o.UID] || keep[o.Namespace+"/"+o.Name] {
			kept = append(kept, o)
		}
	}
	return kept
}

// loopObject answers with the YAML of an object, and with the managers of each field.
func (s *Server) loopObject(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	if query.Get("name") == "" {
		http.Error(w, "Which object? The name is missing.", http.StatusBadRequest)
		return
	}
	p, err := apiPath(query.Get("resource"), query.Get("namespace"), query.Get("name"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	reader, err := s.Objects()
	if err != nil {
		answer(w, Managed{Away: err.Error()})
		return
	}
	defer reader.Close()
	data, err := reader.Get(r.Context(), p)
	if err != nil { // a state of the cluster, not an error of the tab, which asks again
		answer(w, Managed{Away: err.Error(), Deleted: errors.Is(err, fs.ErrNotExist)})
		return
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var object map[string]any
	if err := decoder.Decode(&object); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if strings.HasSuffix(query.Get("resource"), "/secrets") {
		hideValues(object)
	}
	answer(w, manage(object))
}

// A RunningProgram is a process of this user.
type RunningProgram struct {
	PID        int    `json:"pid"`
	Executable string `json:"executable"`
}

// programs returns the given processes that run and belong to this user.
func programs(pids []string) []RunningProgram {
	found := []RunningProgram{}
	for _, id := range process.Own(func(string) bool { return true }) {
		if slices.Contains(pids, strconv.Itoa(id.PID)) {
			found = append(found, RunningProgram{id.PID, id.Executable})
		}
	}
	return found
}
