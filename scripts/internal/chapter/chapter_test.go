package chapter

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"example.com/operator-workshop/scripts/internal/testkit"
)

// tree makes a repository of the given files.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		testkit.Write(t, filepath.Join(root, name), text)
	}
	return root
}

func TestSelect(t *testing.T) {
	root := tree(t, map[string]string{"00-env/go.mod": "", "01-crd/go.mod": "", "04-controller-runtime/go.mod": "",
		"05-operator-sdk/memcached-operator/go.mod": "", "05-operator-sdk/nginx-operator/go.mod": "",
		"05-operator-sdk/way/go.mod": "", "05-operator-sdk/olm/README.md": "",
		"10-more/go.mod": "", "06-no-module/README.md": "", "work/01-crd/go.mod": ""})
	five := []string{"05-operator-sdk/memcached-operator", "05-operator-sdk/nginx-operator",
		"05-operator-sdk/way"}
	for name, test := range map[string]struct {
		prefix string
		want   []string
		err    string
	}{
		"all": {
			"", []string{"00-env", "01-crd", "04-controller-runtime", five[0], five[1], five[2], "10-more"}, ""},
		"two digits":                {"01", []string{"01-crd"}, ""},
		"one digit":                 {"1", []string{"01-crd"}, ""},
		"a whole name":              {"04-controller-runtime", []string{"04-controller-runtime"}, ""},
		"a name from tab":           {"01-crd/", []string{"01-crd"}, ""},
		"a folder of chapters":      {"05", five, ""},
		"a chapter in a folder":     {"05/mem", five[:1], ""},
		"two of them":               {"05/mem,1", []string{"01-crd", five[0]}, ""},
		"one of two is wrong":       {"01,7", nil, "CH=7: no chapter begins so"},
		"ten is not one":            {"10", []string{"10-more"}, ""},
		"no such chapter":           {"07", nil, "CH=07: no chapter begins so; there are 00-env, 01-crd"},
		"as it was typed":           {"9", nil, "CH=9: no chapter begins so"},
		"a chapter without module":  {"06", nil, "no chapter begins so"},
		"nonsense":                  {"x", nil, "no chapter begins so"},
		"a path out of the folders": {"../01", nil, "no chapter begins so"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Select(root, test.prefix)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Errorf("got %v, want an error with %q", err, test.err)
				}
				return
			}
			if diff := cmp.Diff(test.want, got); err != nil || diff != "" {
				t.Errorf("%v\n%s", err, diff)
			}
		})
	}
	if _, err := Page(root, "05"); err == nil || !strings.Contains(err.Error(), "more than one chapter") {
		t.Errorf("two chapters: %v", err)
	}
}

func TestSelectKind(t *testing.T) {
	root := tree(t, map[string]string{"01-crd/go.mod": "", "05-operator-sdk/memcached-operator/go.mod": "",
		"05-operator-sdk/memcached-operator/kind.sh": "", "05-operator-sdk/olm/kind.sh": "", "05-operator-sdk/ways/README.md": ""})
	for prefix, want := range map[string][]string{
		"":       {"01-crd", "05-operator-sdk/memcached-operator", "05-operator-sdk/olm"},
		"05":     {"05-operator-sdk/memcached-operator", "05-operator-sdk/olm"},
		"05/olm": {"05-operator-sdk/olm"},
	} {
		got, err := SelectKind(root, prefix)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("CH=%s: %v\n%s", prefix, err, diff)
		}
	}
}

func TestModulesOf(t *testing.T) {
	root := tree(t,
		map[string]string{"04-c/go.mod": "", "04-c/tool/go.mod": "", "05-sdk/a-operator/go.mod": "",
			"05-sdk/a-operator/program/go.mod": "", "05-sdk/a-operator/internal/x.go": ""})
	chapters, err := All(root)
	testkit.Must(t, err)
	if diff := cmp.Diff([]string{"04-c", "05-sdk/a-operator"}, chapters); diff != "" {
		t.Errorf("a module inside a chapter is no chapter:\n%s", diff)
	}
	got, err := ModulesOf(root, chapters)
	want := []string{"04-c", "04-c/tool", "05-sdk/a-operator", "05-sdk/a-operator/program"}
	if diff := cmp.Diff(want, got); err != nil ||
		diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}

func TestPage(t *testing.T) {
	root := tree(t, map[string]string{
		"04-c/go.mod": "", "05-sdk/a-operator/go.mod": "", "05-sdk/b-operator/go.mod": "", "05-sdk/README.md": "",
		"06-x/a-operator/go.mod": "", "06-x/b-operator/go.mod": "", "README.md": ""})
	for prefix, want := range map[string]string{"4": "04-c", "05": "05-sdk", "05/a": "05-sdk/a-operator"} {
		if got, err := Page(root, prefix); got != want || err != nil {
			t.Errorf("%s: got %s, %v", prefix, got, err)
		}
	}
	for _, prefix := range []string{"06", "0", "7"} {
		if got, err := Page(root, prefix); err == nil {
			t.Errorf("%s: got %s: it has no page of its own", prefix, got)
		}
	}
}

func TestHolds(t *testing.T) {
	all := []string{"04-c", "05-sdk/a-operator", "05-sdk/b-operator"}
	for name, test := range map[string]struct {
		selected []string
		dir      string
		want     bool
	}{
		"the chapter":                       {all[:1], "04-c", true},
		"a page inside it":                  {all[:1], "04-c/internal/webhook", true},
		"another chapter":                   {all[:1], "05-sdk/a-operator", false},
		"a name that only begins so":        {[]string{"04-c"}, "04-controller", false},
		"what all of a folder have":         {all[1:], "05-sdk", true},
		"what one of them has with another": {all[1:2], "05-sdk", false},
		"the repository, for all":           {all, "README", false},
	} {
		if got := Holds(test.selected, all, test.dir); got != test.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestCopies(t *testing.T) {
	root := tree(t, map[string]string{
		"scripts/sync.yaml": "- from: a/x\n  to: [b/x, c/d/x]\n- from: a/crd.yaml\n  as: manifest\n  to: [b/crd.yaml]\n",
		"a/x":               "same", "b/x": "other",
		"a/crd.yaml": "metadata: {name: a}\nspec:\n  one: 1\n  two: 2 # why\n",
		"b/crd.yaml": "metadata: {name: a, annotations: {by: tool}}\nspec: {two: 2, one: 1}\n",
	})
	if err := CheckCopies(root); err == nil || !strings.Contains(err.Error(), "b/x") ||
		!strings.Contains(err.Error(), "c/d/x") {
		t.Errorf("an old copy and a missing one: %v", err)
	}
	if written, err := Sync(root); err != nil || len(written) != 2 {
		t.Errorf("wrote %v, %v", written, err)
	}
	if err := CheckCopies(root); err != nil {
		t.Errorf("after sync: %v", err)
	}
	if err := os.WriteFile(filepath.Join(root, "b/crd.yaml"), []byte("metadata: {name: a}\nspec: {one: 1, two: 3}"),
		0o600); err != nil {
		t.Fatal(err)
	}
	if err := CheckCopies(root); err == nil ||
		!strings.Contains(err.Error(), "b/crd.yaml does not mean what a/crd.yaml says") {
		t.Errorf("a manifest with another meaning: %v", err)
	}
}

func TestAFolderIsCopiedWhole(t *testing.T) {
	root := tree(t, map[string]string{
		"scripts/sync.yaml": "- from: a/lib\n  to: [b/lib]\n", "scripts/nothing.yaml": "- from: a/none\n  to: [b/lib]\n",
		"a/lib/one": "1", "a/lib/two": "2", "b/lib/one": "1", "b/lib/three": "3",
		"a/go.mod": "module example.com/a\n", "b/go.mod": "module example.com/b\n",
		"a/lib/x.go": "import \"example.com/a/other\"",
	})
	err := CheckCopies(root)
	if err == nil || !strings.Contains(err.Error(), "b/lib/two") || !strings.Contains(err.Error(), "b/lib/three") ||
		strings.Contains(err.Error(), "b/lib/one") {
		t.Errorf("one file is missing, one too many: %v", err)
	}
	if _, err := Sync(root); err != nil {
		t.Error(err)
	}
	if err := CheckCopies(root); err != nil {
		t.Errorf("after sync: %v", err)
	}
	if code, err := os.ReadFile(filepath.Join(root, "b/lib/x.go")); err != nil ||
		string(code) != "import \"example.com/b/other\"" {
		t.Errorf("a copy imports from its own module: %s, %v", code, err)
	}
	if _, err := os.Stat(filepath.Join(root, "b/lib/three")); err == nil {
		t.Error("a file without a source is still there")
	}
	if err := os.Rename(filepath.Join(root, "scripts/nothing.yaml"),
		filepath.Join(root, "scripts/sync.yaml")); err != nil {
		t.Fatal(err)
	}
	if err := CheckCopies(root); err == nil {
		t.Error("a source that is not there was taken for an empty folder")
	}
}

func TestACopyNamesItsOwnPackages(t *testing.T) {
	root := tree(t, map[string]string{
		"scripts/sync.yaml": "- from: a/lib\n  to: [b/lib]\n  imports: {api: pkg/api}\n",
		"a/go.mod":          "module example.com/a\n", "b/go.mod": "module example.com/b\n",
		"a/lib/x.go": "package lib\n\nimport (\n\t\"example.com/a/api\"\n\t\"example.com/a/other\"\n)\n",
	})
	if _, err := Sync(root); err != nil {
		t.Fatal(err)
	}
	want := "package lib\n\nimport (\n\t\"example.com/b/other\"\n\t\"example.com/b/pkg/api\"\n)\n"
	code, err := os.ReadFile(filepath.Join(root, "b/lib/x.go"))
	if diff := cmp.Diff(want, string(code)); err != nil || diff != "" {
		t.Error(err, diff)
	}
	if err := CheckCopies(root); err != nil {
		t.Errorf("after sync: %v", err)
	}
}

// The commands of CONTRIBUTING.md make a chapter that is found and compiles.
func TestANewChapterIsACopy(t *testing.T) {
	root := t.TempDir()
	checkout := filepath.Join("..", "..", "..")
	testkit.Must(t, os.CopyFS(filepath.Join(root, "00-env"), os.DirFS(filepath.Join(checkout, "00-env"))))
	_, text, _ := strings.Cut(testkit.Read(t, filepath.Join(checkout, "CONTRIBUTING.md")), "\n## A new chapter\n")
	_, text, _ = strings.Cut(text, "```sh\n")
	commands, _, _ := strings.Cut(text, "```")
	testkit.Run(t, root, "bash", "-ec", commands)
	if dir, err := Page(root, "07"); err != nil || dir != "07-something" {
		t.Errorf("CH=07 is %q, %v", dir, err)
	}
	dir := filepath.Join(root, "07-something")
	if module := testkit.Run(t, dir, "go", "list", "-m"); strings.TrimSpace(module) != "example.com/operator-workshop/07-something" {
		t.Errorf("the module is %s", module)
	}
	testkit.Run(t, dir, "go", "vet", "-mod=readonly", "./...")
}
