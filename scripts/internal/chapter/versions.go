package chapter

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"

	"example.com/operator-workshop/scripts/examine/strictyaml"
	"example.com/operator-workshop/scripts/internal/tools"
)

// versions is scripts/versions.yaml. The keys of its maps, except Modules, are folders of modules.
type versions struct {
	Go      string              `json:"go"`
	Beside  map[string][]string `json:"beside"`  // the folders on which the module may build
	Apart   map[string]string   `json:"apart"`   // the reason why its dependencies may have other versions
	Modules map[string]string   `json:"modules"` // by path
}

func readVersions(root string) (pins versions, err error) {
	err = strictyaml.Read(filepath.Join(root, "scripts", "versions.yaml"), &pins)
	return pins, err
}

// GoVersion returns the pinned version of Go, such as 1.26.0: the oldest that the modules accept.
func GoVersion(root string) (string, error) {
	pins, err := readVersions(root)
	return pins.Go, err
}

// CheckVersions compares every go.mod of the repository with scripts/versions.yaml. The error names each module that
// differs.
func CheckVersions(root string) error {
	pins, err := readVersions(root)
	if err != nil {
		return err
	}
	dirs, err := Modules(root)
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		name := filepath.Join(dir, "go.mod")
		data, readErr := os.ReadFile(filepath.Join(root, name))
		if readErr != nil {
			return readErr
		}
		file, parseErr := modfile.Parse(name, data, nil)
		if parseErr != nil {
			return parseErr
		}
		if file.Go.Version != pins.Go {
			err = errors.Join(err, fmt.Errorf("%s says go %s, scripts/versions.yaml says %s", name, file.Go.Version, pins.Go))
		}
		for _, r := range file.Require {
			want := pins.Modules[r.Mod.Path]
			if want != "" && pins.Apart[dir] == "" && r.Mod.Version != want && !replaced(file, r.Mod.Path, want) {
				err = errors.Join(err, fmt.Errorf("%s requires %s, scripts/versions.yaml says %s", name, r.Mod, want))
			}
		}
		for _, r := range file.Replace {
			if modfile.IsDirectoryPath(r.New.Path) && !slices.Contains(pins.Beside[dir], r.New.Path) {
				err = errors.Join(err,
					fmt.Errorf("%s replaces %s by the folder %s: a module must stand alone", name, r.Old.Path, r.New.Path))
			}
		}
	}
	return err
}

// replaced reports whether a replace line gives the module the wanted version.
func replaced(file *modfile.File, path, want string) bool {
	for _, r := range file.Replace {
		if r.Old.Path == path && r.New.Version == want {
			return true
		}
	}
	return false
}

// CheckShared returns an error for each dependency that modules of the repository compile at different versions: such a
// dependency, and each package that imports it, is compiled several times.
func CheckShared(ctx context.Context, root string) error {
	pins, err := readVersions(root)
	if err != nil {
		return err
	}
	dirs, err := Modules(root)
	if err != nil {
		return err
	}
	lists := map[string][]string{}
	for _, dir := range dirs {
		if pins.Apart[dir] != "" {
			continue
		}
		if lists[dir], err = dependencies(ctx, filepath.Join(root, dir)); err != nil {
			return fmt.Errorf("dependencies of %s: %w", dir, err)
		}
	}
	return checkOneVersion(lists)
}

// dependencies returns the modules, as "path version", that a module's code, tests and tools are compiled from.
func dependencies(ctx context.Context, dir string) (found []string, err error) {
	const format = `{{with .Module}}{{if not .Main}}{{.Path}} ` +
		`{{with .Replace}}{{.Version}}{{else}}{{.Version}}{{end}}{{end}}{{end}}`
	for _, what := range [][]string{{"-test", "-tags=kind", "./..."}, {"tool"}} {
		cmd := exec.CommandContext(ctx, "go", append([]string{"list", "-deps", "-f", format}, what...)...)
		cmd.Dir, cmd.Env = dir, tools.Env()
		var messages strings.Builder
		cmd.Stderr = &messages
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("%w: %s", err, &messages)
		}
		found = append(found, strings.Split(strings.TrimSpace(string(out)), "\n")...)
	}
	return found, nil
}

// checkOneVersion compares lists of dependencies, by the folder of their module. A dependency without a version is
// a folder of the repository.
func checkOneVersion(lists map[string][]string) (err error) {
	users := map[string]map[string][]string{} // by path and version
	for _, dir := range slices.Sorted(maps.Keys(lists)) {
		for _, dependency := range slices.Compact(slices.Sorted(slices.Values(lists[dir]))) {
			path, version, _ := strings.Cut(dependency, " ")
			if version == "" {
				continue
			}
			if users[path] == nil {
				users[path] = map[string][]string{}
			}
			users[path][version] = append(users[path][version], dir)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(users)) {
		if len(users[path]) == 1 {
			continue
		}
		text := path + " is compiled at different versions: `go get` one of them in all"
		for _, version := range slices.Sorted(maps.Keys(users[path])) {
			text += fmt.Sprintf("\n  %s: %s", version, strings.Join(users[path][version], ", "))
		}
		err = errors.Join(err, errors.New(text))
	}
	return err
}
