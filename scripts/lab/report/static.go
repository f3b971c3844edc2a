package report

import (
	"cmp"
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"example.com/operator-workshop/scripts/examine/fixture"
	"example.com/operator-workshop/scripts/lab/myweb/impl"
)

// Static has the properties of a program that need no running program.
type Static struct {
	// BinaryBytes is the size of all programs that an image must contain.
	BinaryBytes int64 `json:"binaryBytes"`
	// Permissions counts the verbs on resources that the roles grant; "all" without a role.
	Permissions string `json:"permissions"`
	// Written counts lines that are neither blank nor only a comment, without tests and generated files, and Files the
	// files with these lines; both are 0 when the source is unknown.
	Written int `json:"written"`
	Files   int `json:"files"`
}

// StaticOf returns the properties of an implementation that is built.
func StaticOf(ctx context.Context, i impl.Implementation) (s Static, err error) {
	if s.BinaryBytes, err = sizeOf(i); err != nil {
		return s, err
	}
	if s.Permissions, err = permissionsOf(i); err != nil || i.Folder == "" {
		return s, err
	}
	return s, s.count(ctx, i)
}

// sizeOf is the size of all programs that an image must contain.
func sizeOf(i impl.Implementation) (bytes int64, err error) {
	programs := append([]string{i.Path}, i.Beside...)
	for _, name := range i.Carries {
		programs = append(programs, filepath.Join(i.Folder, name))
	}
	for _, path := range programs {
		info, err := os.Stat(path)
		if err != nil {
			return 0, err
		}
		bytes += info.Size()
	}
	return bytes, nil
}

// permissionsOf counts the verbs on resources that the roles of an implementation grant, each once.
func permissionsOf(i impl.Implementation) (string, error) {
	if i.Roles == nil {
		return "all", nil
	}
	given := map[fixture.Permission]bool{}
	for _, file := range slices.Concat(i.Roles, i.LeaseRoles) {
		roles, err := fixture.Roles(filepath.Join(i.Folder, file))
		if err != nil {
			return "", err
		}
		for _, role := range roles {
			for _, p := range fixture.Permissions(role.Rules) {
				given[p] = true
			}
		}
	}
	if given[fixture.Permission{Verb: "*", Group: "*", Resource: "*"}] {
		return "all", nil
	}
	return fmt.Sprint(len(given)), nil
}

// count counts the lines and files that the author of an implementation writes.
func (s *Static) count(ctx context.Context, i impl.Implementation) error {
	patterns := i.Written
	if len(patterns) == 0 {
		patterns = []string{cmp.Or(i.Package, i.Program)}
	}
	files := map[string]bool{}
	for _, pattern := range patterns {
		list := sourceOf
		if !strings.HasPrefix(pattern, "./") {
			list = filesOf
		}
		found, err := list(ctx, i.Folder, pattern)
		if err != nil {
			return fmt.Errorf("what the author of %s writes: %w", i.Name, err)
		}
		for _, name := range found {
			files[name] = true
		}
	}
	for name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if filepath.Ext(name) == ".go" && isGenerated(text) {
			continue
		}
		s.Written += writtenLines(text)
		s.Files++
	}
	return nil
}

// filesOf are the files of a pattern, which must match at least one file.
func filesOf(_ context.Context, folder, pattern string) ([]string, error) {
	found, err := filepath.Glob(filepath.Join(folder, pattern))
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("there is no file %s in %s", pattern, folder)
	}
	return found, err
}

// writtenLines counts the lines of a program, a manifest, a template, or a script that are neither blank nor only a
// comment.
func writtenLines(text []byte) (n int) {
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "//") {
			n++
		}
	}
	return n
}

// sourceOf are the files of the packages of the implementation's own module that are linked into a program.
func sourceOf(ctx context.Context, folder, name string) (files []string, err error) {
	const ownFiles = `{{$dir := .Dir}}{{with .Module}}{{if .Main}}{{range $.GoFiles}}{{$dir}}/{{.}}
{{end}}{{end}}{{end}}`
	cmd := exec.CommandContext(ctx, "go", "list", "-deps", "-f", ownFiles, name)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=readonly -trimpath", "GOWORK=off", "CGO_ENABLED=0")
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list the packages of %s: %w", name, err)
	}
	return strings.Fields(string(out)), nil
}

// isGenerated reports whether a program wrote the file.
func isGenerated(text []byte) bool {
	f, err := parser.ParseFile(token.NewFileSet(), "", text, parser.PackageClauseOnly|parser.ParseComments)
	return err == nil && ast.IsGenerated(f)
}
