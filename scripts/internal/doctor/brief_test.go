package doctor

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestBrief(t *testing.T) {
	for name, test := range map[string]struct {
		damage func(w *fixture)
		want   string
	}{
		"a healthy machine": {func(*fixture) {},
			"ok linux/arm64 go1.26.8 2 cores 8 GiB 107 GB free docker:yes"},
		"no Docker": {func(w *fixture) { w.remove("docker") },
			"ok linux/arm64 go1.26.8 2 cores 8 GiB 107 GB free docker:no"},
		"faults": {func(w *fixture) {
			w.answers("env GOFLAGS", "-mod=vendor")
			w.remove("git")
			w.Hostname = func() (string, error) { return "", errors.New("none") }
			w.script("docker", "exit 1")
		}, "FAIL linux/arm64 go1.26.8 2 cores 8 GiB 107 GB free docker:no FAIL:git,host-name warn:goflags,docker"},
		"a warning": {func(w *fixture) { w.script("docker", "exit 1") },
			"warn linux/arm64 go1.26.8 2 cores 8 GiB 107 GB free docker:no warn:docker"},
		"nothing is known": {func(w *fixture) {
			w.remove("go")
			w.Disk = func(string) (uint64, error) { return 0, errors.New("no answer") }
			w.Root = "/nowhere"
		}, "FAIL linux/arm64 go:none 2 cores ? GiB ? GB free docker:yes FAIL:go"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			w.Arch, w.Cores = "arm64", 2
			test.damage(w)
			got := Brief(t.Context(), w.Machine, Examine(t.Context(), w.Machine))
			if !strings.HasPrefix(got, test.want) || strings.Contains(got, "\n") {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// The line names faults by their ID: an instructor finds each in TEACHING.md.
func TestTeachingExplainsEachFault(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "TEACHING.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, check := range checks {
		if id := (Finding{Check: check.name}).ID(); !strings.Contains(string(text), "`"+id+"`") {
			t.Errorf("TEACHING.md does not explain `%s`", id)
		}
	}
}
