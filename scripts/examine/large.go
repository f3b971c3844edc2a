package examine

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// tooLarge is the length of a text that no ConfigMap, Secret (1 MiB) or annotation (256 KiB) can have, and that a custom
// resource can have (1.5 MiB).
const tooLarge = 1<<20 + 1<<16

// longestText is the longest text that the schema allows, at most tooLarge.
func longestText(field map[string]any, was any) []any {
	text, _ := was.(string)
	if text == "" || field["enum"] != nil || field["pattern"] != nil || field["format"] != nil {
		return nil
	}
	most, limited := integer(field["maxLength"])
	if !limited || most > tooLarge {
		most = tooLarge
	}
	return []any{strings.Repeat("x", int(most))}
}

// largeText is the change of a text of the sample that makes a child too large: a ConfigMap, a Secret, or a child with an
// annotation that has the text.
func (r *run) largeText() (v variation, c child, found bool) {
	all, _ := r.target.variations(longestText)
	for _, v := range all {
		was, _ := v.was.(string)
		if len(was) < 3 || v.value == nil || was == v.value {
			continue // a shorter text is in many values
		}
		for _, c := range r.owns() {
			if !c.Cluster && r.hasText(c, was) {
				return v, c, true
			}
		}
	}
	return v, c, false
}

// hasText reports whether the data or an annotation of a child has a text. The values of a Secret are hashes.
func (r *run) hasText(c child, text string) bool {
	places := []string{c.String() + ".metadata.annotations."}
	if slices.Contains([]string{"configmaps", "secrets"}, ledgerName(c)) {
		places = append(places, c.String()+".data.")
	}
	for path, value := range r.state {
		inPlace := slices.ContainsFunc(places, func(place string) bool { return strings.HasPrefix(path, place) })
		if inPlace && (strings.Contains(value, text) || value == r.secrets.Hash([]byte(text))) {
			return true
		}
	}
	return false
}

// becomesTooLarge makes a text of the sample so long that the API server refuses the child with the text, and then restores
// it. Where the schema allows no such text, a policy refuses the child, as the policies of a company limit a size.
func (t *trial) becomesTooLarge(v variation, c child) (Finding, error) {
	if err := t.serve(); err != nil {
		return Finding{}, err
	}
	lift, err := t.forbid(c, "the examination finds this object too large")
	if err != nil {
		return Finding{}, err
	}
	mark := t.Mark()
	if _, err := t.patchSpec(v, v.value); err != nil {
		return t.refusedChange(err)
	}
	message, err := t.awaitRefusal(c, mark)
	if err != nil {
		return skipped("%s: %v", c, err), nil
	}
	w, err := t.watch(time.Now(), t.Mark())
	if err != nil {
		return Finding{}, err
	}
	other, err := t.otherServed(false)
	if err != nil {
		return failed("while %s was too large, %v", c, err).with(lines(t.Writes(mark))...), nil
	}
	reported, where := t.reported(func() (bool, string) { return t.reportsRefusal(message) })
	_, err = t.patchSpec(v, v.was)
	if err := errors.Join(err, lift()); err != nil {
		return Finding{}, err
	}
	begin, mark := time.Now(), t.Mark()
	if err := t.awaitFirstState(v, time.Minute); err != nil {
		return t.notRecovered("1 minute after the text was short again", mark, err), nil
	}
	back := fmt.Sprintf("the refusal was %q; as before %.1f s after the text was short again", shortened(message, 200),
		time.Since(begin).Seconds())
	return w.judge(where+other, back, reported, nil), nil
}

// reportsRefusal is reportsProblem for a sample that was ready before its spec changed: an observed generation that stays
// behind is no report.
func (t *trial) reportsRefusal(message string) (found bool, where string) {
	u, err := t.sample()
	if err != nil {
		return false, err.Error()
	}
	if found, where = t.reports(message); found {
		return found, where
	}
	unstructured.RemoveNestedField(u.Object, "status", "observedGeneration")
	if err := isReady(t.target.Ready, u); err != nil {
		return true, "the status reports only that it is not ready: " + shortened(err.Error(), 200)
	}
	if !t.hasStatus() {
		return true, "its samples have no status"
	}
	return false, where
}
