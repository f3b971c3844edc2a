package composite

// isUpToDate reports whether a live value has all that is desired. What somebody else added to a map, or to a list whose
// elements have a name, is not looked at: an API server adds defaults, and others add labels and sidecars. A field that
// the hook does not name any more is not missed either; it goes with the next apply.
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

// mergeKeys are the fields by which elements of lists are known, most telling first. Metacontroller goes by such a
// convention, too: of a kind that it has never seen, nothing says which lists are sets of named elements.
var mergeKeys = []string{"mountPath", "containerPort", "port", "uid", "name", "ip"}

// mergeKey is the field that all elements have; empty when there is none.
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
