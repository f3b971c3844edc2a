package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestAPageMustNotLoseBlocks(t *testing.T) {
	recorded := map[string]int{"a/README.md": 3}
	for name, test := range map[string]struct {
		page     string
		executed int
		want     string
	}{
		"as many":    {"a/README.md", 3, ""},
		"more":       {"a/README.md", 4, ""},
		"fewer":      {"a/README.md", 2, "executed 2 blocks, scripts/blocks.yaml records 3"},
		"a new page": {"b/README.md", 1, "not in scripts/blocks.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			err := notFewer(test.page, test.executed, recorded)
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestWhatIsRecordedIsWhatPagesExecute(t *testing.T) {
	w := workshop{root: t.TempDir()}
	for path, text := range map[string]string{
		"scripts/x":   "",
		"README.md":   "```sh\ntrue\n```\n```sh skip=\"why\"\nx\n```\n",
		"a/README.md": "```sh\ntrue\n```\n```console\n```\n```sh environment=kind\nx\n```\n```sh\ntrue\n```\n",
	} {
		path = filepath.Join(w.root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.recordBlocks(); err != nil {
		t.Fatal(err)
	}
	recorded, err := w.recordedBlocks()
	if err != nil || recorded["README.md"] != 1 || recorded["a/README.md"] != 2 {
		t.Errorf("recorded %v, %v", recorded, err)
	}
}

func TestExitCodes(t *testing.T) {
	child := exec.Command("sh", "-c", "exit 7").Run()
	interrupted, cancel := context.WithCancel(t.Context())
	cancel()
	for name, test := range map[string]struct {
		ctx  context.Context
		err  error
		want int
	}{
		"all went well":                   {t.Context(), nil, 0},
		"an error":                        {t.Context(), errors.New("x"), 1},
		"an error of a child":             {t.Context(), child, 1},
		"a child that has said it itself": {t.Context(), errors.Join(errSaid, child), 7},
		"Ctrl-C":                          {interrupted, child, 130},
	} {
		t.Run(name, func(t *testing.T) {
			if got := exitCode(test.ctx, test.err); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}

func TestTheEnvironmentOfAPage(t *testing.T) {
	t.Setenv("GOFLAGS", "-mod=vendor")
	t.Setenv("MAKEFLAGS", "k")
	t.Setenv("CH", "03")
	w := workshop{root: "/r", state: "/s t"}
	env := w.pageEnv()
	for _, want := range []string{
		"GOFLAGS=-mod=readonly", "GOWORK=off", "WORKSHOP_STATE=/s t", "KUBECONFIG=/s t/kubeconfig",
		"PATH=/r/bin:" + os.Getenv("PATH")} {
		if !slices.Contains(env, want) {
			t.Errorf("%s is missing", want)
		}
	}
	for _, kv := range env {
		if strings.HasPrefix(kv, "MAKEFLAGS=") || strings.HasPrefix(kv, "CH=") || kv == "GOFLAGS=-mod=vendor" {
			t.Errorf("%s was handed on", kv)
		}
	}
}

func TestExportsSurviveAShell(t *testing.T) {
	w := workshop{root: "/a learner's $(folder)", state: "/a learner's $(folder)/.workshop"}
	out, err := exec.Command("bash", "-c", w.exports()+`printf '%s\n%s' "$KUBECONFIG" "${PATH%%:*}"`).Output()
	if want := w.state + "/kubeconfig\n" + w.bin(); err != nil || string(out) != want {
		t.Errorf("%v, got %q, want %q", err, out, want)
	}
}
