package impl

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// must ends a test when there is an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// checkout creates a folder with a list of two, a third that runs only by name, and a fourth that is only compared.
func checkout(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(root, "scripts", "lab"), 0o700))
	list := "implementations:\n- {name: \"03\", folder: a, package: ./cmd/a}\n- {name: \"04\", folder: b, " +
		"package: ./cmd/b}\n- {name: shell, folder: c, program: operator.sh, onlyByName: true}\n" +
		"- {name: stage, folder: b, package: ./stages/9, onlyCompared: true}\n"
	must(t, os.WriteFile(filepath.Join(root, "scripts", "lab", "operators.yaml"), []byte(list), 0o600))
	return root
}

func TestChoose(t *testing.T) {
	root := checkout(t)
	for words, want := range map[string]string{
		"":                   "03 04",
		"04":                 "04",
		"04 03":              "04 03",
		"shell 03":           "shell 03",
		"03 mine=/some/file": "03 mine",
	} {
		chosen, err := Choose(root, strings.Fields(words)...)
		if err != nil {
			t.Errorf("%q: %v", words, err)
		}
		var names []string
		for _, i := range chosen {
			names = append(names, i.Name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%q chose %s, want %s", words, got, want)
		}
	}
	if names, err := Compared(root); err != nil || strings.Join(names, " ") != "03 04 stage" {
		t.Errorf("compared are %v, %v", names, err)
	}
	for word, want := range map[string]string{
		"05":         `there is no implementation "05": there are 03, 04, shell, stage; your own is name=path/to/binary`,
		"03=file":    "03 is the name of one of the workshop's own",
		"Mine=file":  "is not name=path/to/binary",
		"mine=":      "is not name=path/to/binary",
		"=some/file": "is not name=path/to/binary",
	} {
		if _, err := Choose(root, word); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", word, err, want)
		}
	}
}

// script creates a program.
func script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program")
	must(t, os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o700))
	return path
}

func TestFlags(t *testing.T) {
	for name, text := range map[string]string{
		"as flag prints them": "printf 'Usage of x:\\n  -leader-elect\\n    \\twork only -hard\\n  -kubeconfig " +
			"string\\n' >&2; exit 2",
		"as pflag prints them": "printf 'Flags:\\n  -h, --help   help\\n      --leader-elect   work\\n      --kubeconfig " +
			"string   file\\n'",
	} {
		i, err := Implementation{Name: "x", Path: script(t, text)}.Build(t.Context(), t.TempDir())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !i.Has("leader-elect") || !i.Has("kubeconfig") || i.Has("hard") || i.Has("x") {
			t.Errorf("%s: flags %v", name, i.Flags)
		}
		if got, want := i.With("--leader-elect", "--metrics-bind-address=0"),
			[]string{"--leader-elect"}; !slices.Equal(got, want) {
			t.Errorf("%s: with %v, want %v", name, got, want)
		}
	}
}

func TestACommand(t *testing.T) {
	program := script(t, `[ "$*" = "run --help" ] && printf '  --leader-elect  work\n  --kubeconfig  file\n'`)
	for args, want := range map[string]bool{"run --watches-file=x": true, "run": true, "--run": false, "": false} {
		i, err := Implementation{Name: "x", Path: program, Args: strings.Fields(args)}.Build(t.Context(), t.TempDir())
		must(t, err)
		if i.Has("leader-elect") != want {
			t.Errorf("%q: flags %v", args, i.Flags)
		}
	}
}

func TestCRDs(t *testing.T) {
	for name, test := range map[string]struct {
		i    Implementation
		want []string
	}{
		"that of all":     {Implementation{Folder: "/f"}, []string{"/root/" + CRD}},
		"one in a file":   {Implementation{Folder: "/f", CRDFile: "crd.yaml"}, []string{"/f/crd.yaml"}},
		"of its own make": {Implementation{Folder: "/f", OwnCRD: true}, nil},
	} {
		if got := test.i.CRDs("/root"); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
		if got := test.i.AnotherCRD(); got != (name != "that of all") {
			t.Errorf("%s: another CRD: %v", name, got)
		}
	}
}

func TestBuildFails(t *testing.T) {
	plain := filepath.Join(t.TempDir(), "plain")
	must(t, os.WriteFile(plain, nil, 0o600))
	for path, want := range map[string]string{
		plain:                   "is not an executable file",
		t.TempDir():             "is not an executable file",
		plain + "-that-is-gone": "no such file",
	} {
		if _, err := (Implementation{Name: "x", Path: path}).Build(t.Context(), t.TempDir()); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", path, err, want)
		}
	}
}

func TestPrograms(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":       "module example.com/x\n\ngo 1.26\n",
		"main.go":      "package main\n\nfunc main() {}\n",
		"hook/main.go": "package main\n\nfunc main() {}\n",
		"operator.sh":  "#!/bin/sh\necho '  --leader-elect   work'\n",
	} {
		path := filepath.Join(folder, name)
		must(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o700)))
	}
	into := t.TempDir()
	built, err := Implementation{Name: "x", Folder: folder, Package: ".", Besides: []string{"./hook"},
		Args: []string{"--hook=$(BIN)/hook"}, Env: []string{"CHART=$(FOLDER)/chart"}}.Build(t.Context(), into)
	must(t, err)
	hook := strings.TrimPrefix(built.Args[0], "--hook=")
	if info, err := os.Stat(hook); err != nil || info.Mode()&0o111 == 0 {
		t.Errorf("the program of Besides is not at %s: %v", built.Args[0], err)
	}
	if want := "CHART=" + folder + "/chart"; built.Env[0] != want || built.Path != filepath.Join(into, "x") {
		t.Errorf("env %v and path %s, want %s", built.Env, built.Path, want)
	}
	plain, err := Implementation{Name: "y", Folder: folder, Program: "operator.sh"}.Build(t.Context(), into)
	if err != nil || plain.Path != filepath.Join(folder, "operator.sh") || !plain.Has("leader-elect") {
		t.Errorf("a file that is run as it is: %s %v %v", plain.Path, plain.Flags, err)
	}
	if _, err := (Implementation{Name: "z", Folder: folder, Package: "./gone"}).Build(t.Context(), into); err == nil {
		t.Error("a package that is not there, and no error")
	}
}

// TestListed checks the list of the checkout: each entry names existing files, and the entries that run without a
// name are those of the chapters.
func TestListed(t *testing.T) {
	root, err := Here()
	must(t, err)
	listed, err := Listed(root)
	must(t, err)
	always := []string{}
	for _, i := range listed {
		if i.MustPass() {
			always = append(always, i.Name)
		}
		if (i.Package == "") == (i.Program == "") {
			t.Errorf("%s: either a package or a program", i.Name)
		}
		files := slices.Concat(i.Roles, i.LeaseRoles, i.Needs)
		if i.Program != "" {
			files = append(files, i.Program)
		}
		for _, name := range files {
			if _, err := os.Stat(filepath.Join(i.Folder, name)); err != nil {
				t.Errorf("%s: %v", i.Name, err)
			}
		}
	}
	if want := []string{"03", "04"}; !slices.Equal(always, want) {
		t.Errorf("without IMPL= %v run, want %v", always, want)
	}
}
