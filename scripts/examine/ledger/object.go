package ledger

import (
	"encoding/json"
	"hash/maphash"
	"maps"
	"slices"
	"strconv"
	"strings"

	"example.com/operator-workshop/scripts/examine/loop"
	"example.com/operator-workshop/scripts/examine/state"
)

// Limits of the descriptions: the number of objects, and the bytes of an object whose fields are compared.
const (
	mostDescribed = 2000
	mostContent   = 256 << 10
)

// An object has hashes of the newest values that are known, and a description of each version.
type object struct {
	resourceVersion string
	state           state.State
	versions        []described
}

type described struct {
	resourceVersion, kind string
	loop.Shown
}

// Describe notes the content of an object that passed the proxy, as JSON, for the records about it. The records have the
// paths of fields, but no value of the object's data.
func (l *Ledger) Describe(content []byte) {
	var o loop.Object
	var fields map[string]any
	if json.Unmarshal(content, &o) != nil || json.Unmarshal(content, &fields) != nil || o.Metadata.UID == "" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	known := l.described(o.Metadata.UID)
	if slices.ContainsFunc(known.versions, func(d described) bool { return d.resourceVersion == o.Metadata.ResourceVersion }) {
		return
	}
	d := described{o.Metadata.ResourceVersion, o.Kind, loop.Shown{Facts: o.Facts(), Owners: o.Owners()}}
	if Newer(d.resourceVersion, known.resourceVersion) {
		var now state.State
		if len(content) <= mostContent {
			now = stateOf(fields)
		}
		if known.state != nil && now != nil {
			d.Fields = changed(known.state, now)
		}
		known.resourceVersion, known.state = d.resourceVersion, now
	}
	known.versions = append(known.versions, d)
	known.versions = known.versions[max(0, len(known.versions)-boundVersions):]
	l.objects.Add(o.Metadata.UID, known)
}

// Fields returns the paths of the fields that writes changed, as far as they are known.
func (l *Ledger) Fields(writes ...Entry) (paths []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range writes {
		for _, d := range l.described(e.UID).versions {
			if e.Effect == Moved && d.resourceVersion == e.ResourceVersion {
				paths = append(paths, d.Fields...)
			}
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// described needs the lock.
func (l *Ledger) described(uid string) object {
	found, _ := l.objects.Get(uid)
	known, _ := found.(object)
	return known
}

// shown adds the description of the object to a record. It needs the lock.
func (l *Ledger) shown(r loop.Record, changes bool) loop.Record {
	for _, d := range l.described(r.UID).versions {
		if r.UID == "" || d.resourceVersion != r.ResourceVersion {
			continue
		}
		if r.Shown = d.Shown; !changes {
			r.Fields = nil
		}
		if len(r.Owners) == 0 && !loop.IsCustom(r.Group) {
			r.Facts = append(slices.Clone(r.Facts), loop.NoOwner)
		}
		if r.Kind == "" {
			r.Kind = d.kind
		}
	}
	return r
}

// follows are the fields that change with each change of an object.
var follows = []string{"managedFields", "resourceVersion", "generation"}

// seed of the hashes of this process.
var seed = maphash.MakeSeed()

// stateOf returns a hash of each value, by its path: a ledger keeps no value of an object.
func stateOf(fields map[string]any) state.State {
	s := state.State{}
	if metadata, ok := fields["metadata"].(map[string]any); ok {
		maps.DeleteFunc(metadata, func(key string, _ any) bool { return slices.Contains(follows, key) })
	}
	s.Add("", fields, nil)
	maps.DeleteFunc(s, func(path, value string) bool {
		return value == "<nil>" || path == ".kind" || path == ".apiVersion" // an item of a list lacks its kind
	})
	for path, value := range s {
		s[path] = strconv.FormatUint(maphash.String(seed, value), 36)
	}
	return s
}

// changed returns the paths whose values differ; of an item with several such fields, it returns the path of the item.
// When there are none, only the managers of fields have changed.
func changed(before, now state.State) (paths []string) {
	const several = 3
	_, varying := state.Common([]state.State{before, now})
	fields := map[string]int{} // their number by item
	for path := range varying {
		fields[itemOf(path)]++
	}
	for _, path := range slices.Sorted(maps.Keys(varying)) {
		if item := itemOf(path); item != "" && fields[item] >= several {
			path = item
		}
		paths = append(paths, strings.TrimPrefix(path, "."))
	}
	if len(paths) == 0 {
		return []string{"metadata.managedFields"}
	}
	return slices.Compact(paths)
}

// itemOf returns the path of the item of a list that has a field, or nothing.
func itemOf(path string) string { return path[:strings.LastIndex(path, "]")+1] }
