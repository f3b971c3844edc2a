package codegen_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"

	"example.com/operator-workshop/02-codegen/internal/testenv"
	"example.com/operator-workshop/02-codegen/internal/webctl"
)

// linesOf returns the lines that were printed so far.
func linesOf(o *gbytes.Buffer) func() []string {
	return func() []string { return strings.Split(strings.TrimSpace(string(o.Contents())), "\n") }
}

func TestWebctlWatchSelectsAndResyncs(t *testing.T) {
	namespace := newNamespace(t)
	t.Setenv("KUBECONFIG", testenv.WriteKubeconfig(t, server, namespace))
	tiers(t, newClientset(t).OperatorV1().MyWebs(namespace))
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	watched, ended := gbytes.NewBuffer(), make(chan error, 1)
	go func() { ended <- webctl.Run(ctx, strings.Fields("watch -l tier=back --resync 1s"), watched) }()

	gomega.NewWithT(t).Eventually(linesOf(watched), 10*time.Second).
		Should(gomega.ContainElement("RESYNC   c: generation 1, image nginx, 0 of 1 ready"))
	interrupt()
	if err := <-ended; err != nil {
		t.Errorf("watch ended with %v", err)
	}
	lines := slices.Compact(linesOf(watched)()) // one RESYNC or more
	want := []string{
		"FOUND    c: generation 1, image nginx, 0 of 1 ready",
		"the cache has synced, watching",
		"RESYNC   c: generation 1, image nginx, 0 of 1 ready",
		"the cache holds 1 at the end",
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("watched (-want +got):\n%s", diff)
	}
}

func TestWebctlFailsWithASentence(t *testing.T) {
	here, nowhere := testenv.WriteKubeconfig(t, server, newNamespace(t)), testenv.WriteKubeconfig(t, server, "default")
	closed, err := os.ReadFile(nowhere)
	testenv.Must(t, err)
	if err := os.WriteFile(nowhere, []byte(strings.Replace(string(closed), server.Host, "https://127.0.0.1:1", 1)),
		0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct{ command, want string }{
		"an object that is not there": {
			"get absent", `get absent: mywebs.operator.k8s-summit.org "absent" not found`},
		"a number that the CRD refuses":        {"apply --image nginx --node-port 80 shop", "spec.nodePortNumber"},
		"a watch with a selector that is none": {"watch -l =", "watch: "},
		"a server that does not answer":        {"watch --kubeconfig nowhere", "connection refused"},
		"a kubeconfig that is not there":       {"watch --kubeconfig /does/not/exist", "read the kubeconfig"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", here)
			args := strings.Fields(test.command)
			for i := range args {
				args[i] = strings.Replace(args[i], "nowhere", nowhere, 1)
			}
			ctx, cancel := context.WithTimeoutCause(t.Context(), 20*time.Second, errors.New("did not fail in time"))
			defer cancel()
			err := webctl.Run(ctx, args, gbytes.NewBuffer())
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s: %v, want %q", test.command, err, test.want)
			}
		})
	}
}
