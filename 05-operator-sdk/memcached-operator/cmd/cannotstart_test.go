package main

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"

	"k8s.io/client-go/rest"

	"github.com/example/memcached-operator/internal/testenv"
)

func TestItSaysInOneLineWhyItCannotStart(t *testing.T) { // runs first, before the CRD is installed
	admin := "--kubeconfig=" + kubeconfig(t, "")
	nobody := fmt.Sprint("https://127.0.0.1:", testenv.FreePort(t))
	unreachable := testenv.WriteKubeconfig(t, &rest.Config{Host: nobody}, "")
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, port, _ := net.SplitHostPort(taken.Addr().String())
	for situation, test := range map[string]struct {
		args []string
		want string
	}{
		"no CRD": {
			[]string{admin}, "does not know the kind " + kind + ": install the CRD first (make install)"},
		"no API server":              {[]string{"--kubeconfig=" + unreachable}, "connection refused"},
		"no such kubeconfig":         {[]string{"--kubeconfig=" + unreachable + "-none"}, "set KUBECONFIG or --kubeconfig"},
		"an unknown flag":            {[]string{"--colour"}, "flag provided but not defined: -colour"},
		"no worker":                  {[]string{admin, "--max-concurrent-reconciles=0"}, "must be at least 1"},
		"a namespace that cannot be": {[]string{admin, "WATCH_NAMESPACE=a,B"}, `WATCH_NAMESPACE names "B"`},
		"a port in use": {
			[]string{admin, "--health-probe-bind-address=127.0.0.1:" + port}, "listen tcp 127.0.0.1:" + port},
		"metrics in the clear for all": {[]string{admin, "--metrics-bind-address=:0", "--metrics-secure=false"},
			`--metrics-bind-address is ":0": without --metrics-secure it must be 0 or 127.0.0.1:port`},
		"metrics in the clear, by name": {
			[]string{admin, "--metrics-bind-address=localhost:0", "--metrics-secure=false"}, "--metrics-bind-address"},
		"a lease nowhere": {[]string{admin, "--leader-elect"}, "unable to find leader election namespace"},
		"an image that cannot be": {
			[]string{admin, imageVariable + "=Image::"}, imageVariable + ` is "Image::": invalid reference format`},
		"a choice that is none": {
			[]string{admin, "ENABLE_WEBHOOKS=perhaps"}, `ENABLE_WEBHOOKS is "perhaps": it must be true or false`},
		"webhooks without certificate": {
			[]string{admin, "ENABLE_WEBHOOKS=true"}, "outside a cluster webhooks need --webhook-cert-path"},
		"webhooks on a port in use": {
			[]string{admin, "--webhook-cert-path=" + t.TempDir(), "--webhook-port=" + port}, "--webhook-port: listen tcp"},
	} {
		t.Run(situation, func(t *testing.T) {
			p := launch(t, test.args...)
			gomega.NewWithT(t).Eventually(p, "20s").Should(gexec.Exit())
			code, text := p.ExitCode(), p.Output()
			if code == 0 || !strings.Contains(text, test.want) {
				t.Errorf("it ended with code %d and said:\n%s\nwant %q", code, text, test.want)
			}
			if situation == "an unknown flag" { // it prints all flags
				return
			}
			if !strings.HasPrefix(text, name+": ") || strings.Count(text, "\n") != 1 {
				t.Errorf("it said more than one line, or not by its name:\n%s", text)
			}
		})
	}
}
