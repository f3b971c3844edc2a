package webctl

import (
	"strings"
	"testing"
)

func TestParseRefuses(t *testing.T) {
	for name, test := range map[string]struct{ line, want string }{
		"an unknown verb":             {"paint shop", `no verb "paint"`},
		"a missing name":              {"get", `get: the arguments after the flags are [], want ["NAME"]`},
		"a name too many":             {"get shop blog", `are ["shop" "blog"], want ["NAME"]`},
		"a flag behind the arguments": {"get shop -n web", "after the flags"},
		"a port that is none":         {"apply --node-port http shop", "node-port"},
		"a port too large":            {"apply --node-port 2147483648 shop", "node-port"},
		"a port with a tail":          {"apply --node-port 30100x shop", "node-port"},
		"a label without a value":     {"apply --label a shop", "is not KEY=VALUE"},
		"a flag of another verb":      {"get --image nginx shop", "flag provided but not defined"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := parse(strings.Fields(test.line)); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s: %v, want %q", test.line, err, test.want)
			}
		})
	}
}

func TestHelpIsShownWithoutACluster(t *testing.T) {
	for _, line := range []string{"", "help", "--help", "get -h"} {
		var out strings.Builder
		if err := Run(t.Context(), strings.Fields(line), &out); err != nil || out.String() != Usage {
			t.Errorf("webctl %s: %v, %q", line, err, out.String())
		}
	}
	for verb := range arguments {
		if !strings.Contains(Usage, "\n  "+verb+" ") {
			t.Errorf("the usage does not name %s", verb)
		}
	}
}
