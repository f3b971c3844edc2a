package composite

// isUpToDate reports whether a live value contains the desired value. It ignores additions to a map, and to a list
// whose elements have a name: the API server adds defaults, and other clients add labels and sidecars. It also ignores
// a field that the hook no longer names; the next apply removes the field.
func isUpToDate(live, desired any) bool {
	switch desired := desired.(type) {
	case map[string]any:
		live, _ := live.(map[string]any)
		for name, value := range desired {
			if !isUpToDate(live[name], value) {
				return false
			}
		}
		return true
	case []any:
		live, _ := live.([]any)
		return isListUpToDate(live, desired)
	default:
		return live == desired
	}
}

func isListUpToDate(live, desired []any) bool {
	key := mergeKey(desired)
	if key == "" && len(live) != len(desired) {
		return false
	}
	for at, element := range desired {
		found := false
		for n, l := range live {
			if key == "" && n != at || key != "" && nameOf(l, key) != nameOf(element, key) {
				continue
			}
			found = isUpToDate(l, element)
			break
		}
		if !found {
			return false
		}
	}
	return true
}

// mergeKeys are the fields that identify elements of lists, the most specific first. Metacontroller uses such a
// convention, too: for an unknown kind, nothing declares which lists are sets of named elements.
var mergeKeys = []string{"mountPath", "containerPort", "port", "uid", "name", "ip"}

// mergeKey returns the first of mergeKeys that all elements have, or nothing.
func mergeKey(list []any) string {
	for _, key := range mergeKeys {
		all := len(list) > 0
		for _, element := range list {
			all = all && nameOf(element, key) != nil
		}
		if all {
			return key
		}
	}
	return ""
}

func nameOf(element any, key string) any {
	fields, _ := element.(map[string]any)
	return fields[key]
}
