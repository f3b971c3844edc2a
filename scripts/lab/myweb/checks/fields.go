package checks

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"example.com/operator-workshop/scripts/examine"
	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

// perWeb is how many fields are edited in one MyWeb, one after the other: an operator may limit the rate of corrections
// for each MyWeb.
const perWeb = 4

// fieldsEdited edits every field of a child that the operator applied, in the list that the API server keeps. An
// operator without server-side apply has no such list. A field that no user can change is in the evidence, with the API
// server's reason. A field that a user could change, and that the lab has no value for, is a failure of the experiment.
func fieldsEdited(t *suite.T, resource string) {
	name := func(n int) string { return fmt.Sprintf("field-%d", n/perWeb) }
	t.Serve(name(0), asking(t.NodePort()))
	fields, err := examine.Applied(t.Read(resource, name(0)))
	t.Must(err, "read what the operator applied")
	slices.SortFunc(fields, func(a, b examine.Field) int { return strings.Compare(a.String(), b.String()) })
	for n := perWeb; n < len(fields); n += perWeb {
		t.Create(name(n), asking(t.NodePort()))
	}
	before, content := make([]*suite.Children, len(fields)), make([]any, len(fields))
	for n := 0; n < len(fields); n += perWeb {
		_, before[n] = converged(t, name(n))
		content[n] = contentOf(t, resource, name(n))
	}
	mark, edited := t.Mark(), 0
	for round := range perWeb { // one field of each MyWeb
		was := map[int]any{}
		for n := round; n < len(fields); n += perWeb {
			value, refused := editField(t, resource, name(n), fields[n])
			switch {
			case refused == nil:
				was[n] = value
			case fixed.MatchString(refused.Error()):
				t.Note("not edited: %s: %v", fields[n], refused)
			default:
				t.Errorf("%s was not edited, so nothing shows that it is restored: %v", fields[n], refused)
			}
		}
		for n, value := range was {
			t.Eventually(fields[n].String()+" is restored", patience, func() error {
				if _, now, _ := fields[n].Find(t.Read(resource, name(n))); !reflect.DeepEqual(now, value) {
					return fmt.Errorf("it is %s, and was %s", suite.JSON(now), suite.JSON(value))
				}
				return isRestored(t, resource, name(n), content[n-round])
			})
		}
		edited += len(was)
	}
	if len(fields) > 0 && edited == 0 {
		t.Errorf("nothing was shown: none of %d applied fields was changed", len(fields))
	}
	for n := 0; n < len(fields); n += perWeb {
		_, after := converged(t, name(n))
		t.SameChildren(before[n], after)
	}
	wantMade(t, mark, 0, suite.Kinds...)
}

// fixed are the reasons of the API server for refusing any other value of a field: a selector, a label that it selects,
// a volume that a mount names. An empty object has no value.
var fixed = regexp.MustCompile("field is immutable|`selector` does not match template `labels`|Not found|" + isEmpty)

const isEmpty = "it is an empty object"

// editField gives a field another value that the API server accepts, as a user does. It returns the value of before,
// and the reason when no value was accepted.
func editField(t *suite.T, resource, name string, f examine.Field) (was any, refused error) {
	child := t.Read(resource, name)
	pointer, was, ok := f.Find(child)
	if !ok {
		t.Fatalf("%s of %s is gone", f, name)
	}
	t.ActOn(resource, "a user changed %s of %s %s", f, suite.KindOf[resource], name)
	refused = fmt.Errorf("the lab has no other value for %s", suite.JSON(was))
	if empty, ok := was.(map[string]any); ok && len(empty) == 0 {
		return nil, errors.New(isEmpty)
	}
	for _, value := range othersOf(t, child, pointer, was) {
		patch := suite.JSON([]operation{{"replace", pointer, value}})
		now, err := t.Objects(resource).Patch(t.Ctx, name, types.JSONPatchType, []byte(patch), metav1.PatchOptions{})
		if err != nil {
			refused = err
			continue
		}
		if _, is, _ := f.Find(now); !reflect.DeepEqual(is, was) {
			return was, nil
		}
	}
	return nil, refused
}

// othersOf returns values that can replace the value of a field of a child.
func othersOf(t *suite.T, child *unstructured.Unstructured, pointer string, was any) (values []any) {
	switch {
	case strings.HasSuffix(pointer, "/nodePort"):
		return []any{t.NodePort()} // that no other check uses
	case strings.Contains(pointer, "/volumeMounts/") && strings.HasSuffix(pointer, "/name"):
		volumes, _, _ := unstructured.NestedSlice(child.Object, "spec", "template", "spec", "volumes")
		for _, v := range volumes {
			if name := v.(map[string]any)["name"]; name != was {
				values = append(values, name)
			}
		}
		return values
	}
	switch was.(type) {
	case []any:
		return []any{[]any{}}
	case map[string]any:
		return []any{map[string]any{"app": "vandal"}}
	}
	return examine.Others(was)
}
