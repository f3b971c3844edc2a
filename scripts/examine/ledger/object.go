package ledger

import (
	"cmp"
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

// An object has hashes of the newest values that are known, the texts of some of them, and a description of each
// version.
type object struct {
	resourceVersion string
	state, texts    state.State
	versions        []described
}

type described struct {
	resourceVersion, kind string
	loop.Shown
}

// Describe notes the content of an object that passed the proxy, as JSON, for the records about it. The records have the
// paths of fields, and the changed values of spec and status, but no value of the object's data.
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
		var now, texts state.State
		if len(content) <= mostContent {
			now, texts = stateOf(fields)
		}
		if known.state != nil && now != nil {
			d.Fields = changed(known.state, now)
			d.Values = values(d.Fields, known.texts, texts)
		}
		known.resourceVersion, known.state, known.texts = d.resourceVersion, now, texts
	}
	known.versions = append(known.versions, d)
	if l.bounded {
		known.versions = known.versions[max(0, len(known.versions)-boundVersions):]
	}
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

// RemovesOwners reports whether a write has removed all owner references of an object, as far as it is known.
func (l *Ledger) RemovesOwners(e Entry) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	isOwner := func(path string) bool { return strings.HasPrefix(path, "metadata.ownerReferences") }
	return slices.ContainsFunc(l.described(e.UID).versions, func(d described) bool {
		return e.Effect == Moved && d.resourceVersion == e.ResourceVersion && len(d.Owners) == 0 &&
			slices.ContainsFunc(d.Fields, isOwner)
	})
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
			r.Fields, r.Values = nil, nil
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

// stateOf returns a hash of each value, by its path, and the text of each value that a record may show.
func stateOf(fields map[string]any) (s, texts state.State) {
	s, texts = state.State{}, state.State{}
	if metadata, ok := fields["metadata"].(map[string]any); ok {
		maps.DeleteFunc(metadata, func(key string, _ any) bool { return slices.Contains(follows, key) })
	}
	s.Add("", fields, nil)
	maps.DeleteFunc(s, func(path, value string) bool {
		return value == "<nil>" || path == ".kind" || path == ".apiVersion" // an item of a list lacks its kind
	})
	for path, value := range s {
		if mayShow(path) {
			texts[path] = line(value)
		}
		s[path] = strconv.FormatUint(maphash.String(seed, value), 36)
	}
	return s, texts
}

// mayShow reports whether a record may show a value. The data of a Secret is outside of spec and status, and so is the
// annotation in which kubectl copies it. An environment variable of a pod may have a password.
func mayShow(path string) bool {
	return (strings.HasPrefix(path, ".spec.") || strings.HasPrefix(path, ".status.")) && !strings.Contains(path, ".env[")
}

// The number of characters of a value that the ledger keeps for a comparison, and that a record shows.
const mostKept, mostShown = 1000, 40

// line returns a value in one line.
func line(value string) string { return cut(strings.Join(strings.Fields(value), " "), mostKept) }

// cut returns the beginning of a long text.
func cut(text string, most int) string {
	all := []rune(text)
	if len(all) > most {
		all = append(all[:most-1:most-1], '…')
	}
	return string(all)
}

// contrast returns two values in short lines. Of a long value, the line has the part that differs.
func contrast(was, is string) string {
	const before = 8
	a, b, same := []rune(was), []rune(is), 0
	for same < min(len(a), len(b)) && a[same] == b[same] {
		same++
	}
	if at := same - before; at > 0 && max(len(a), len(b)) > mostShown {
		was, is = "…"+string(a[at:]), "…"+string(b[at:])
	}
	return cut(was, mostShown) + " → " + cut(is, mostShown)
}

// values returns the old and the new value of each field of which a text is known.
func values(fields []string, before, now state.State) map[string]string {
	all := map[string]string{}
	for _, field := range fields {
		was, had := before["."+field]
		is, has := now["."+field]
		if had || has {
			all[field] = contrast(cmp.Or(was, "–"), cmp.Or(is, "–"))
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all
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
