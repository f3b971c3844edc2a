package operator

import (
	"flag"
	"io"
	"slices"
	"strings"
	"testing"
)

// options returns the options from flags and the environment.
func options(t *testing.T, flags ...string) *Options {
	t.Helper()
	o, set := &Options{}, flag.NewFlagSet("test", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	o.Bind(set)
	if err := set.Parse(append([]string{"--health-probe-bind-address=0"}, flags...)); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestWhichFlagsCanBe(t *testing.T) {
	for name, test := range map[string]struct {
		flags []string
		wrong string
	}{
		"the defaults":               {nil, ""},
		"no worker":                  {[]string{"--max-concurrent-reconciles=0"}, "--max-concurrent-reconciles is 0"},
		"metrics over TLS for all":   {[]string{"--metrics-bind-address=:0"}, ""},
		"metrics in the clear, here": {[]string{"--metrics-bind-address=127.0.0.1:0", "--metrics-secure=false"}, ""},
		"metrics in the clear for all": {
			[]string{"--metrics-bind-address=:0", "--metrics-secure=false"}, `--metrics-bind-address is ":0"`},
		"metrics in the clear, by name": {
			[]string{"--metrics-bind-address=localhost:0", "--metrics-secure=false"}, "--metrics-bind-address"},
		"no metrics, in the clear":   {[]string{"--metrics-secure=false"}, ""},
		"a namespace that cannot be": {[]string{"--namespaces=a,B"}, `--namespaces names "B"`},
	} {
		t.Run(name, func(t *testing.T) {
			err := options(t, test.flags...).check()
			if (err == nil) != (test.wrong == "") || err != nil && !strings.HasPrefix(err.Error(), test.wrong) {
				t.Errorf("got %v, want %q", err, test.wrong)
			}
		})
	}
}

func TestWhichNamespacesAreServed(t *testing.T) {
	for name, test := range map[string]struct {
		environment string
		flags       []string
		want        []string
	}{
		"all":                                {"", nil, nil},
		"by a flag":                          {"", []string{"--namespaces=a,b"}, []string{"a", "b"}},
		"by the environment":                 {"a, b,", nil, []string{"a", "b"}},
		"the flag wins":                      {"a", []string{"--namespaces=b"}, []string{"b"}},
		"all, in spite of the environment":   {"a", []string{"--namespaces="}, nil},
		"the last flag, not all of them":     {"", []string{"--namespaces=a", "--namespaces=b"}, []string{"b"}},
		"commas without a name between them": {"", []string{"--namespaces=,,a,"}, []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("WATCH_NAMESPACE", test.environment)
			if got := options(t, test.flags...).Namespaces; !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
