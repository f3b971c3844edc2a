package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"example.com/operator-workshop/scripts/internal/page"
	"example.com/operator-workshop/scripts/internal/teaching"
	"example.com/operator-workshop/scripts/internal/testkit"
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

// A slide cuts a line of code that is too long. Pictures have another size.
func TestCodeOnASlideIsNotTooWide(t *testing.T) {
	w := workshop{root: t.TempDir()}
	path := filepath.Join(w.root, teaching.SlidesFile)
	wide := strings.Repeat("…", 78)
	testkit.Write(t, path, "# The slides\n\n## One\n\n```text skip=\"x\"\n"+wide+"...\n"+wide+"....\n\t"+wide+"\n```\n"+
		"```mermaid skip=\"a picture\"\n"+wide+"....\n```\n")
	_, err := w.checkPage(t.Context(), io.Discard, path)
	want := path + ":7: the code has 82 columns, and a slide shows 81: break the line (skip=\"wrapped from FILE\")\n" +
		path + ":8: the code has 82 columns, and a slide shows 81: break the line (skip=\"wrapped from FILE\")"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestWhatIsRecordedIsWhatPagesExecute(t *testing.T) {
	w := workshop{root: t.TempDir()}
	for path, text := range map[string]string{
		"scripts/x":   "",
		"README.md":   "```sh\ntrue\n```\n```sh skip=\"why\"\nx\n```\n",
		"a/README.md": "```sh\ntrue\n```\n```console\n```\n```sh skip=\"needs kind\"\nx\n```\n```sh\ntrue\n```\n",
	} {
		testkit.Write(t, filepath.Join(w.root, path), text)
	}
	testkit.Must(t, w.recordBlocks())
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
		"GOFLAGS=-mod=readonly -trimpath", "GOWORK=off", "WORKSHOP_STATE=/s t", "KUBECONFIG=/s t/kubeconfig",
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

// Each term of the glossary is used on another page: a word that no chapter uses does not need an entry. Each entry
// also has a command or a line of code.
func TestTheGlossaryExplainsWordsOfThePages(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	glossary := filepath.Join(root, "GLOSSARY.md")
	paths, err := page.Find(root)
	testkit.Must(t, err)
	var others strings.Builder
	for _, path := range paths {
		if path == glossary {
			continue
		}
		text, err := os.ReadFile(path)
		testkit.Must(t, err)
		others.Write(regexp.MustCompile(`\s+`).ReplaceAll(text, []byte(" ")))
	}
	text := testkit.Read(t, glossary)
	entries := regexp.MustCompile(`(?m)^### `).Split(text, -1)[1:]
	if len(entries) < 30 {
		t.Errorf("the glossary has %d terms, want at least 30", len(entries))
	}
	for _, entry := range entries {
		term, explanation, _ := strings.Cut(entry, "\n")
		if !regexp.MustCompile(`(?i)\b` + regexp.QuoteMeta(term)).MatchString(others.String()) {
			t.Errorf("%q is on no other page", term)
		}
		if !strings.Contains(explanation, "```sh") && !strings.Contains(explanation, "```go") {
			t.Errorf("%q has no command and no line of code", term)
		}
	}
}

// TestTheDemoIsPlainText: the text of the demo describes what the demo does, without the marks of Markdown.
func TestTheDemoIsPlainText(t *testing.T) {
	p, err := page.Parse(filepath.Join("..", "..", "..", "04-controller-runtime", demoPage))
	testkit.Must(t, err)
	wrong := regexp.MustCompile("`|\\]\\(|\\*\\*|<!--|terminal|ask again|Ctrl-C|make demo|this folder")
	for _, part := range p.Until("What happened").Parts {
		if found := wrong.FindString(part.Prose); found != "" {
			t.Errorf("%q is in: %s", found, part.Prose)
		}
	}
}

// A test cannot build the dev container. It can compare the container's settings with this repository.
func TestTheDevContainerFitsTheRepository(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	read := func(path string) []byte {
		data, err := os.ReadFile(filepath.Join(root, path))
		testkit.Must(t, err)
		return data
	}
	var container struct {
		Image            string
		PostCreate       string `json:"postCreateCommand"`
		HostRequirements struct {
			CPUs            int
			Memory, Storage string
		}
	}
	testkit.Must(t, json.Unmarshal(read(".devcontainer/devcontainer.json"), &container))
	var pins struct{ Go string }
	testkit.Must(t, yaml.Unmarshal(read("scripts/versions.yaml"), &pins))
	if _, tag, _ := strings.Cut(container.Image, ":"); tag == "" || !strings.HasPrefix(pins.Go+".", tag+".") {
		t.Errorf("the image is %s, scripts/versions.yaml pins Go %s", container.Image, pins.Go)
	}
	targets, ok := strings.CutPrefix(container.PostCreate, "make ")
	makefile := read("Makefile")
	for _, target := range strings.Fields(targets) {
		if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(target) + `:`).Match(makefile) {
			t.Errorf("the Makefile has no target %q", target)
		}
	}
	if !ok || !slices.Contains(strings.Fields(targets), "tools") {
		t.Errorf("%q does not compile the tools ahead", container.PostCreate)
	}
	if h := container.HostRequirements; h.CPUs < 2 || h.Memory != "8gb" || h.Storage != "32gb" {
		t.Errorf("TEACHING.md and the first build ask for 2 cores, 8 GB of memory and 32 GB of disk: %+v", h)
	}
}

func TestEnterIsAwaitedUntilCtrlC(t *testing.T) {
	var out strings.Builder
	in, keyboard := io.Pipe()
	pause := enter(in, &out)
	go func() { _, _ = keyboard.Write([]byte("\n")) }()
	if err := pause(t.Context()); err != nil || out.String() != "[Enter] " {
		t.Errorf("after Enter: %v, it printed %q", err, out.String())
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	if err := pause(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("after Ctrl-C: %v", err)
	}
	if err := enter(strings.NewReader(""), &out)(t.Context()); err != nil {
		t.Errorf("nobody is there: %v", err)
	}
}

// In /tmp, and in a TMPDIR that users share, another user can put a link with the name of a file that a page writes. A
// time of kubectl ends on a busy machine, so only a block that is repeated has one. The API server itself reports
// Established: 2 minutes are enough for it.
func TestPagesDependOnNoUserAndNoSpeed(t *testing.T) {
	timed := regexp.MustCompile(`kubectl (wait |.*--timeout=)`)
	established := regexp.MustCompile(`condition=Established .*--timeout=2m\b`)
	paths, err := page.Find(filepath.Join("..", "..", ".."))
	testkit.Must(t, err)
	for _, path := range paths {
		p, err := page.Parse(path)
		testkit.Must(t, err)
		for _, part := range p.Parts {
			b := part.Block
			if b != nil && b.Lang == "sh" && (strings.Contains(b.Text, "TMPDIR") || strings.Contains(b.Text, "/tmp/")) {
				t.Errorf("%s:%d: write to $WORKSHOP_LOGS, or to a folder that mktemp makes:\n%s", path, b.Line, b.Text)
			}
			if b == nil || b.Lang != "sh" || b.Within > 0 || b.Skip != "" {
				continue
			}
			for line := range strings.Lines(b.Text) {
				if timed.MatchString(line) && !established.MatchString(line) {
					t.Errorf("%s:%d: add the word within=60s, or --timeout=2m for Established: %s", path, b.Line, line)
				}
			}
		}
	}
}

// A reader may have settings of Go for another project: in variables, and a go.work in a parent folder.
func TestGoRunIgnoresSettingsForOtherProjects(t *testing.T) {
	above := t.TempDir()
	w := workshop{root: filepath.Join(above, "checkout"), state: filepath.Join(above, "checkout", ".workshop")}
	for name, text := range map[string]string{
		"go.work":          "go 1.26\n",
		"checkout/go.mod":  "module example.test/chapter\n\ngo 1.26\n",
		"checkout/main.go": "package main\n\nfunc main() { println(\"it runs\") }\n",
	} {
		testkit.Write(t, filepath.Join(above, name), text)
	}
	for name, variable := range map[string]string{"a go.work": "GOWORK=", "another system": "GOOS=windows",
		"another processor": "GOARCH=mips64", "flags": "GOFLAGS=-n", "an old Go": "GOTOOLCHAIN=go1.20.1",
		"a folder of programs": "GOBIN=relative"} {
		t.Run(name, func(t *testing.T) {
			run := func(env []string, before string) (string, error) {
				cmd := exec.Command("bash", "-c", before+"go run . && go install .")
				cmd.Dir, cmd.Env = w.root, append(env, "GOPATH="+filepath.Join(above, "gopath"), "GOPROXY=off")
				out, err := cmd.CombinedOutput()
				return string(out), err
			}
			settings := append(os.Environ(), variable)
			if name != "a go.work" {
				settings = append(settings, "GOWORK=off")
			}
			if out, err := run(settings, w.exports()); err != nil || out != "it runs\n" {
				t.Errorf("after workshop env: %v:\n%s", err, out)
			}
			name, value, _ := strings.Cut(variable, "=")
			t.Setenv(name, value)
			if out, err := run(w.pageEnv(), ""); err != nil || out != "it runs\n" {
				t.Errorf("a block of a page: %v:\n%s", err, out)
			}
		})
	}
}

// A page in a language that does not have it is an error that names the languages and the way out.
func TestAPageInAnotherLanguage(t *testing.T) {
	w := workshop{root: filepath.Join("..", "..", "..")}
	path, err := w.chapterPage("00", "ja")
	if err != nil || path != filepath.Join(w.root, "i18n", "ja", "00-env", "README.md") {
		t.Error(path, err)
	}
	for _, language := range []string{"fr", ".."} {
		if _, err := w.chapterPage("05/kro", language); err == nil || !strings.Contains(err.Error(), "languages: ja, ko, zh-TW") {
			t.Errorf("%s: %v", language, err)
		}
	}
}
