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

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"example.com/operator-workshop/02-codegen/internal/testenv"
	"example.com/operator-workshop/02-codegen/internal/webctl"
)

// linesOf returns the lines that were printed so far.
func linesOf(o *gbytes.Buffer) func() []string {
	return func() []string { return strings.Split(strings.TrimSpace(string(o.Contents())), "\n") }
}

// TestWebctlAsOnThePage runs the commands of the page, with a watcher beside them.
func TestWebctlAsOnThePage(t *testing.T) {
	t.Setenv("KUBECONFIG", testenv.WriteKubeconfig(t, server, newNamespace(t)))
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	watched, ended := gbytes.NewBuffer(), make(chan error, 1)
	go func() { ended <- webctl.Run(ctx, []string{"watch"}, watched) }()
	g := gomega.NewWithT(t)
	sees := func(line string) {
		t.Helper()
		g.Eventually(linesOf(watched), 10*time.Second).Should(gomega.ContainElement(line))
	}
	sees("the cache has synced, watching")

	for _, step := range []struct{ command, output, watched string }{
		{"apply --image nginx --label tier=front shop",
			"shop 1 nginx 0/1 tier=front", "ADDED    shop: generation 1, image nginx, 0 of 1 ready"},
		{"apply --image nginx --label tier=back blog",
			"blog 1 nginx 0/1 tier=back", "ADDED    blog: generation 1, image nginx, 0 of 1 ready"},
		{"scale shop 3",
			"shop 2 nginx 0/3 tier=front", "CHANGED  shop: generation 2, image nginx, 0 of 3 ready"},
		{"status shop 3",
			"shop 2 nginx 3/3 tier=front", "STATUS   shop: generation 2, image nginx, 3 of 3 ready"},
		{"list -l tier=front", "shop 2 nginx 3/3 tier=front", ""},
		{"list --field-selector metadata.name!=shop", "blog 1 nginx 0/1 tier=back", ""},
		{"apply --image httpd --label tier=front shop",
			"shop 3 httpd 3/3 tier=front", "CHANGED  shop: generation 3, image httpd, 3 of 3 ready"},
		{"get shop", "shop 3 httpd 3/3 tier=front", ""},
		{"delete shop", "deleted shop", "DELETED  shop"},
	} {
		out := gbytes.NewBuffer()
		if err := webctl.Run(t.Context(), strings.Fields(step.command), out); err != nil {
			t.Fatalf("%s: %v", step.command, err)
		}
		lines := linesOf(out)()
		if got := strings.Join(strings.Fields(lines[len(lines)-1]), " "); got != step.output {
			t.Errorf("%s printed %q, want %q", step.command, got, step.output)
		}
		if step.watched != "" {
			sees(step.watched)
		}
	}

	interrupt()
	if err := <-ended; err != nil {
		t.Errorf("watch ended with %v", err)
	}
	sees("the cache holds 1 at the end")
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

func TestWebctlApplyMeetsAnotherOwner(t *testing.T) {
	t.Setenv("KUBECONFIG", testenv.WriteKubeconfig(t, server, newNamespace(t)))
	run := func(command string) error {
		return webctl.Run(t.Context(), strings.Fields(command), gbytes.NewBuffer())
	}
	if err := run("apply --image nginx shop"); err != nil {
		t.Fatal(err)
	}
	if err := run("apply --image httpd --manager editor shop"); !apierrors.IsConflict(err) ||
		!strings.Contains(err.Error(), `"webctl"`) {
		t.Errorf("another manager: %v, want a conflict with webctl", err)
	}
	if err := run("apply --image httpd --manager editor --force shop"); err != nil {
		t.Errorf("another manager with force: %v", err)
	}
}

func TestWebctlFailsWithASentence(t *testing.T) {
	here, nowhere := testenv.WriteKubeconfig(t, server, newNamespace(t)), testenv.WriteKubeconfig(t, server, "default")
	closed, err := os.ReadFile(nowhere)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(nowhere, []byte(strings.Replace(string(closed), server.Host, "https://127.0.0.1:1", 1)),
		0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct{ command, want string }{
		"an object that is not there": {
			"get absent", `get absent: mywebs.operator.k8s-summit.org "absent" not found`},
		"a status of a missing object":         {"status absent 1", "write the status of absent"},
		"a number that the CRD refuses":        {"apply --image nginx --node-port 80 shop", "spec.nodePortNumber"},
		"a selector that is none":              {"list -l =", "list: "},
		"a watch with a selector that is none": {"watch -l =", "watch: "},
		"a server that does not answer":        {"watch --kubeconfig nowhere", "connection refused"},
		"a kubeconfig that is not there":       {"list --kubeconfig /does/not/exist", "read the kubeconfig"},
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
