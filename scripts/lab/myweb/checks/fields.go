package checks

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/operator-workshop/scripts/examine"
	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

// perWeb is how many fields are edited in one MyWeb, one after the other: an operator may limit the rate of corrections
// for each MyWeb.
const perWeb = 4

// fieldsEdited edits every field of a child that the operator applied, in the list that the API server keeps. An
// operator without server-side apply has no such list.
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
			if value, ok := editField(t, resource, name(n), fields[n]); ok {
				was[n] = value
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

// editField gives a field another value that the API server accepts, as a user does. It returns the value of before. It
// returns false when no client can change the field.
func editField(t *suite.T, resource, name string, f examine.Field) (was any, ok bool) {
	pointer, was, ok := f.Find(t.Read(resource, name))
	if !ok {
		t.Fatalf("%s of %s is gone", f, name)
	}
	values := examine.Others(was)
	if strings.HasSuffix(pointer, "/nodePort") {
		values = []any{t.NodePort()} // that no other check uses
	}
	t.ActOn(resource, "a user changed %s of %s %s", f, suite.KindOf[resource], name)
	for _, value := range values {
		patch := suite.JSON([]operation{{"replace", pointer, value}})
		now, err := t.Objects(resource).Patch(t.Context(), name, types.JSONPatchType, []byte(patch), metav1.PatchOptions{})
		if err != nil {
			continue
		}
		if _, is, _ := f.Find(now); !reflect.DeepEqual(is, was) {
			return was, true
		}
	}
	return nil, false
}
