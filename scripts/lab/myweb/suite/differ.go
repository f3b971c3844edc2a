package suite

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"example.com/operator-workshop/scripts/examine/state"
)

// Differ lists up to ten fields that differ between two values; nil when all are equal.
func Differ(got, want any) error {
	if reflect.DeepEqual(got, want) {
		return nil
	}
	lines := state.Compare(fieldsOf(got), fieldsOf(want), nil, "the wanted value")
	if len(lines) == 0 {
		return fmt.Errorf("got %s, wanted %s", JSON(got), JSON(want))
	}
	return errors.New(strings.Join(lines, "\n"))
}

// fieldsOf maps the paths in a value to their values, shortened for a message.
func fieldsOf(value any) state.State {
	decoder := json.NewDecoder(strings.NewReader(JSON(value)))
	decoder.UseNumber() // keep the spelling of numbers
	var object any
	_ = decoder.Decode(&object)
	all, shown := state.State{}, state.State{}
	all.Add("", object, nil)
	for path, text := range all {
		if runes := []rune(text); len(runes) > 60 {
			text = string(runes[:60]) + "…"
		}
		shown[cmp.Or(strings.TrimPrefix(path, "."), "it")] = text
	}
	return shown
}
