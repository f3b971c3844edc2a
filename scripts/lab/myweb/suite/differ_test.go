package suite

import (
	"fmt"
	"strings"
	"testing"
)

func TestOnlyTheFieldsThatDifferAreNamed(t *testing.T) {
	service := func(port int, page string) map[string]any {
		return map[string]any{"page": page, "ports": []any{map[string]any{"name": "http", "port": port, "nodePort": 31000}}}
	}
	more := service(80, "a")
	more["type"] = "NodePort"
	for name, test := range map[string]struct {
		got  any
		want string
	}{
		"equal":        {service(80, "a"), "<nil>"},
		"a number":     {service(81, "a"), `ports[http].port is "81"; the wanted value is "80"`},
		"two fields":   {service(81, "b"), "page is \"b\"; the wanted value is \"a\"\nports[http].port is \"81\""},
		"a field more": {more, `type is "NodePort"; the wanted value does not exist`},
		"a long value": {service(80, strings.Repeat("ü", 99)),
			`page is "` + strings.Repeat("ü", 60) + `…"; the wanted value is "a"`},
		"another type":   {"text", `it is "text"; the wanted value does not exist`},
		"fields missing": {map[string]any{"page": "a"}, `ports[http].name is missing; the wanted value is "http"`},
	} {
		if got := fmt.Sprint(Differ(test.got, service(80, "a"))); !strings.HasPrefix(got, test.want) {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
	if err := Differ(int64(1), 1); err == nil || err.Error() != "got 1, wanted 1" {
		t.Errorf("values that differ by their type alone: %v", err)
	}
}
