package chapter

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestCheckNames: each line of prose is one case; WRONG marks those that must be reported.
func TestCheckNames(t *testing.T) {
	pages := "as `config/role.yaml` says\n`owned/gone.go` has it WRONG\n[a link](../x/missing.sh) WRONG\n" +
		"run `make install.yaml`\n```go file=included.go\n// in a block: block.go\n```\n`…_types.go` and <kind>_types.go\n" +
		"their `pkg/other.go:234`\n" +
		"`TestThere`, `TestTh…`\n`TestTher` WRONG\n`TestGone…` WRONG\n"
	hashes := "# run.sh and NAME/x.yaml, made in out/y.yaml\na: b # of config/role.yaml\nc: d # config/rule.yaml WRONG\n" +
		"e: f#g.yaml\nh: gone.txt\n# gone.mjs WRONG\n# writes examine.json\n"
	slashes := "a() // run.sh\n/* config/rule.yaml WRONG */\n * gone.mjs WRONG\nb() // gone.css WRONG\n"
	files := map[string]string{
		"03-x/web/a.js": slashes, "03-x/x.go.tmpl": slashes, "03-x/web/vendor/b.js": "// theirs.js\n",
		"03-x/x.Dockerfile": "# gone.yml WRONG\n", ".ci/run": "# gone.yml WRONG\n",
		"03-x/Makefile": hashes, "scripts/examine/gallery/x.yaml": "# their pkg/theirs.go\n",
		"04-x/go.mod": "module x\n", "04-x/owned/errors.go": "package owned\n", "04-x/config/role.yaml": "",
		"04-x/README.md": pages, "05-sdk/layout/README.md": "their `generate-groups.sh`\n", "bin/made.go": "",
		"03-x/go.mod": "module x\n", "03-x/run.sh": "", "03-x/a/a_test.go": "package a\n\nfunc TestThere(t *testing.T) {}\n",
		"03-x/a/main.go": "package a\n\n// See run.sh, a/main.go, ./run.sh, boilerplate.go.tar, pkg.go.dev and 04-x/owned/errors.go.\n// As errors.go WRONG says.\n" +
			"// made.go WRONG\n//\n//\tfile: exercises/example.go\n//\n// k8s.io/kubernetes/pkg/x.go has it, and *.yaml.\n" +
			"const s = \"//string.go\" // (z.sh). WRONG\n",
	}
	root := tree(t, files)
	err := CheckNames(root)
	for file, text := range files {
		for line := range strings.Lines(text) {
			for _, name := range append(names(line), testName.FindAllString(line, -1)...) {
				reported := err != nil && strings.Contains(err.Error(), file) && strings.Contains(err.Error(), " "+name+",")
				if wrong := strings.Contains(line, "WRONG"); reported != wrong {
					t.Errorf("%s: %q reported: %v", file, name, reported)
				}
			}
		}
	}
	if n := strings.Count(err.Error(), "\n") + 1; n != strings.Count(strings.Join(slices.Collect(maps.Values(files)), ""), "WRONG") {
		t.Errorf("%d errors:\n%v", n, err)
	}
}

func TestFilesThatAreNamedExist(t *testing.T) {
	if err := CheckNames(filepath.Join("..", "..", "..")); err != nil {
		t.Error(err)
	}
}
