package program

import (
	"crypto/tls"
	"flag"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
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
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
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
		"no metrics, in the clear": {[]string{"--metrics-secure=false"}, ""},
		"an address that is none":  {[]string{"--metrics-bind-address=nowhere"}, "--metrics-bind-address: listen tcp"},
		"a port that is taken": {
			[]string{"--metrics-bind-address=" + taken.Addr().String()}, "--metrics-bind-address: listen tcp"},
		"probes on a port that is taken": {
			[]string{"--health-probe-bind-address=" + taken.Addr().String()}, "--health-probe-bind-address: listen tcp"},
		"a lease nowhere":   {[]string{"--leader-elect"}, "--leader-elect needs --leader-election-namespace"},
		"a lease somewhere": {[]string{"--leader-elect", "--leader-election-namespace=default"}, ""},
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
		want        []string
		wrong       bool
	}{
		"all":                        {"", nil, false},
		"one":                        {"a", []string{"a"}, false},
		"several, in any order":      {"b, a,", []string{"a", "b"}, false},
		"one that is named twice":    {"a,a", []string{"a"}, false},
		"commas without names":       {",,", nil, false},
		"a namespace that cannot be": {"a,B", []string{"B", "a"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("WATCH_NAMESPACE", test.environment)
			o := options(t)
			if !slices.Equal(o.Namespaces, test.want) {
				t.Errorf("got %q, want %q", o.Namespaces, test.want)
			}
			if err := o.check(); (err != nil) != test.wrong || err != nil &&
				!strings.HasPrefix(err.Error(), `WATCH_NAMESPACE names "B"`) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestTheTruthOfAnEnvironmentVariable(t *testing.T) {
	for text, test := range map[string]struct{ otherwise, want, wrong bool }{
		"":      {true, true, false},
		"true":  {false, true, false},
		"1":     {false, true, false},
		"false": {true, false, false},
		"yes":   {true, false, true},
	} {
		t.Setenv("A_BOOL", text)
		if got, err := EnvBool("A_BOOL", test.otherwise); got != test.want || (err != nil) != test.wrong {
			t.Errorf("%q: got %v, %v", text, got, err)
		}
	}
}

func TestHowMetricsAreServed(t *testing.T) {
	secure := options(t, "--metrics-bind-address=:8443", "--metrics-cert-path=/certs").metrics()
	if secure.BindAddress != ":8443" || !secure.SecureServing || secure.FilterProvider == nil ||
		secure.CertDir != "/certs" || secure.CertName != "tls.crt" || secure.KeyName != "tls.key" {
		t.Errorf("got %+v", secure)
	}
	offered := &tls.Config{NextProtos: []string{"h2", "http/1.1"}}
	for _, change := range secure.TLSOpts {
		change(offered)
	}
	if !slices.Equal(offered.NextProtos, []string{"http/1.1"}) {
		t.Errorf("the server offers %v", offered.NextProtos)
	}
	if clear := options(t, "--metrics-secure=false").metrics(); clear.SecureServing || clear.FilterProvider != nil {
		t.Errorf("got %+v", clear)
	}
}
