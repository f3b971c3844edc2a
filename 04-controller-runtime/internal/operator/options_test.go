package operator

import (
	"flag"
	"io"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

// options are what flags and the environment give.
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
		"a limit without a burst":    {[]string{"--kube-api-qps=5", "--kube-api-burst=0"}, "--kube-api-burst is 0"},
		"no limit, and no burst":     {[]string{"--kube-api-burst=0"}, ""},
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

func TestRequestsAreLimitedOnlyWhenAskedFor(t *testing.T) {
	given := &rest.Config{Host: "https://example.com", QPS: 5, Burst: 10}
	if cfg := limited(given, *options(t)); cfg.QPS != -1 || cfg.RateLimiter != nil {
		t.Errorf("by default there is no limit, got %g, %v", cfg.QPS, cfg.RateLimiter)
	}
	cfg := limited(given, *options(t, "--kube-api-qps=7", "--kube-api-burst=2"))
	if cfg.RateLimiter == nil || cfg.RateLimiter.QPS() != 7 {
		t.Fatalf("got %v", cfg.RateLimiter)
	}
	for i, want := range []bool{true, true, false} {
		if got := cfg.RateLimiter.TryAccept(); got != want {
			t.Errorf("request %d at once may be sent: %v", i+1, got)
		}
	}
	if rest.CopyConfig(cfg).RateLimiter != cfg.RateLimiter {
		t.Error("clients for different kinds would each have a limit of their own")
	}
	if given.QPS != 5 || given.UserAgent != "" {
		t.Error("the given configuration was changed")
	}
}
