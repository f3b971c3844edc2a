package suite

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"example.com/operator-workshop/scripts/lab/engine/state"
)

// Differ lists up to ten fields that differ between two values; nil when all are equal.
func Differ(got, want any) error {
	if reflect.DeepEqual(got, want) {
		return nil
	}
	have, wanted := fieldsOf(got), fieldsOf(want)
	all := maps.Clone(have)
	maps.Copy(all, wanted)
	var lines []string
	for _, path := range slices.Sorted(maps.Keys(all)) {
		if is, should := shown(have, path), shown(wanted, path); is != should {
			lines = append(lines, fmt.Sprintf("%s is %s, wanted %s", cmp.Or(strings.TrimPrefix(path, "."), "it"), is, should))
		}
	}
	if len(lines) == 0 {
		return fmt.Errorf("got %s, wanted %s", JSON(got), JSON(want))
	}
	if len(lines) > 10 {
		lines = append(lines[:10], fmt.Sprintf("… %d more", len(lines)-10))
	}
	return errors.New(strings.Join(lines, "\n"))
}

// nothing is a mask that matches no path.
var nothing = regexp.MustCompile(`^\b$`)

// fieldsOf maps the paths in a value to their values.
func fieldsOf(value any) state.State {
	decoder := json.NewDecoder(strings.NewReader(JSON(value)))
	decoder.UseNumber() // keep the spelling of numbers
	var object any
	_ = decoder.Decode(&object)
	fields := state.State{}
	fields.Add("", object, nothing)
	return fields
}

// shown is the value of a path, shortened for a message.
func shown(s state.State, path string) string {
	value, there := s[path]
	if !there {
		return "missing"
	}
	if runes := []rune(value); len(runes) > 60 {
		value = string(runes[:60]) + "…"
	}
	return strconv.Quote(value)
}
