package chapter

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"example.com/operator-workshop/scripts/internal/testkit"
)

func TestVersions(t *testing.T) {
	good := "module m\n\ngo 1.26.0\n\nrequire k8s.io/api v0.37.1\n"
	files := map[string]string{
		"scripts/lab/go.mod": good + "\nreplace m => ../\n",
		"scripts/versions.yaml": "go: 1.26.0\nbeside:\n  scripts/lab: [../]\n" +
			"apart:\n  05-sdk/way/tool: it has versions of its own\nmodules:\n  k8s.io/api: v0.37.1\n",
		"05-sdk/way/tool/go.mod": "module m\n\ngo 1.26.0\n\nrequire k8s.io/api v0.36.3\n",
		"scripts/go.mod":         good, "scripts/tools/go.mod": good, "01-crd/go.mod": good,
	}
	if err := CheckVersions(tree(t, files)); err != nil {
		t.Errorf("all as it should be: %v", err)
	}
	for name, test := range map[string]struct{ mod, want string }{
		"an older module":              {strings.Replace(good, "v0.37.1", "v0.36.0", 1), "requires k8s.io/api@v0.36.0"},
		"another Go":                   {strings.Replace(good, "1.26.0", "1.27.0", 1), "says go 1.27.0"},
		"a sibling in the same folder": {good + "\nreplace k8s.io/api => ../api\n", "must stand alone"},
		"an older module, replaced": {
			strings.Replace(good, "v0.37.1", "v0.0.0", 1) + "\nreplace k8s.io/api => k8s.io/api v0.37.1\n", ""},
		"a newer Go than it needs":  {strings.Replace(good, "1.26.0", "1.26.3", 1), "says go 1.26.3"},
		"a module that nobody pins": {good + "\nrequire example.com/x v1.0.0\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			for _, path := range []string{"01-crd/go.mod", "01-crd/program/go.mod"} {
				changed := maps.Clone(files)
				changed["01-crd/go.mod"] = good
				changed[path] = test.mod
				err := CheckVersions(tree(t, changed))
				if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
					t.Errorf("%s: got %v, want %q", path, err, test.want)
				}
			}
		})
	}
}

func TestAModuleApartHasVersionsOfItsOwn(t *testing.T) {
	const list = "go: 1.26.0\napart:\n  %s: its authors have others\nmodules:\n  k8s.io/api: v0.37.1\n"
	for apart, good := range map[string]bool{"05-sdk/way": true, "05-sdk/other": false} {
		root := tree(t, map[string]string{"scripts/versions.yaml": fmt.Sprintf(list, apart),
			"05-sdk/way/go.mod": "module m\n\ngo 1.26.0\n\nrequire k8s.io/api v0.32.0\n"})
		if err := CheckVersions(root); (err == nil) != good {
			t.Errorf("%s is apart: %v", apart, err)
		}
	}
}

func TestOneVersionOfEachDependency(t *testing.T) {
	for name, test := range map[string]struct {
		lists map[string][]string
		want  string
	}{
		"one version":        {map[string][]string{"a": {"x v1.0.0", "y v1.0.0"}, "b": {"x v1.0.0"}}, ""},
		"two packages of it": {map[string][]string{"a": {"x v1.0.0", "", "x v1.0.0"}, "b": {"x v1.0.0"}}, ""},
		"two versions": {map[string][]string{"a": {"x v1.0.0"}, "b": {"x v1.1.0"}, "c": {"x v1.0.0"}},
			"x is compiled at different versions: `go get` one of them in all\n  v1.0.0: a, c\n  v1.1.0: b"},
		"a folder": {map[string][]string{"a": {"x "}, "b": {"x v1.1.0"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if err := checkOneVersion(test.lists); (err == nil) != (test.want == "") || err != nil && err.Error() != test.want {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestDependenciesAreThoseThatAreCompiled(t *testing.T) {
	list, err := dependencies(t.Context(), "../..")
	testkit.Must(t, err)
	for path, want := range map[string]bool{
		"golang.org/x/mod":                      true,
		"github.com/google/go-cmp":              true,  // of tests
		"github.com/inconshreveable/mousetrap":  false, // of Windows
		"example.com/operator-workshop/scripts": false,
	} {
		got := slices.ContainsFunc(list, func(d string) bool { return strings.HasPrefix(d, path+" v") })
		if got != want {
			t.Errorf("%s is compiled: %v, want %v", path, got, want)
		}
	}
}
